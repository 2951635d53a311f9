package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// bees is one FluxSetup, "bees", in a world of its own, with what a test needs to play all others: the Flux
// controller, the Job controller, the garbage collector and the kubelets.
type bees struct {
	*world
	t          *testing.T
	flux       *v1alpha1.Flux
	reconciler *FluxSetupReconciler
}

// newBees makes a Flux and its FluxSetup. Its clock shows the API server's time.
func newBees(t *testing.T, spec v1alpha1.FluxSpec) *bees {
	t.Helper()
	b := &bees{world: newWorld(t), t: t}
	b.clock.SetTime(time.Now().Truncate(time.Second))
	b.reconciler = b.newReconciler(b.client)
	b.flux = b.makeFlux(spec)
	b.applySetup(firstSetup(b.flux))
	return b
}

// fluxOf is a spec of the given size.
func fluxOf(size int32) v1alpha1.FluxSpec {
	return v1alpha1.FluxSpec{Image: "flux", Command: []string{"hostname"}, Size: size}
}

func (b *bees) newReconciler(c client.Client) *FluxSetupReconciler {
	return NewFluxSetupReconciler(c, b.client, b.clock)
}

func (b *bees) makeFlux(spec v1alpha1.FluxSpec) *v1alpha1.Flux {
	b.t.Helper()
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}, Spec: spec}
	b.Expect(b.client.Create(b.ctx, flux)).To(Succeed())
	return flux
}

func (b *bees) applySetup(setup *v1alpha1.FluxSetup) {
	b.t.Helper()
	b.Expect(b.client.Apply(b.ctx, configurationOf(setup), client.FieldOwner(fluxFieldOwner), client.ForceOwnership)).To(Succeed())
}

// change plays the Flux controller, which changes the FluxSetup.
func (b *bees) change(mutate func(*v1alpha1.FluxSetupSpec)) {
	b.t.Helper()
	setup := b.setup()
	next := &v1alpha1.FluxSetup{
		ObjectMeta: metav1.ObjectMeta{Name: setup.Name, Namespace: setup.Namespace, UID: setup.UID, OwnerReferences: setup.OwnerReferences},
		Spec:       setup.Spec,
	}
	next.Spec.Launch = nil
	mutate(&next.Spec)
	b.applySetup(next)
}

// restart plays the Flux controller, which begins the next attempt.
func (b *bees) restart() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) {
		spec.Attempt++
		spec.Restarts++
	})
}

func (b *bees) try() (ctrl.Result, error) {
	return b.reconciler.Reconcile(b.ctx, ctrl.Request{NamespacedName: b.key("bees")})
}

// pass makes one pass, which must not fail, and returns the FluxSetup after it.
func (b *bees) pass() *v1alpha1.FluxSetup {
	b.t.Helper()
	_, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	return b.setup()
}

// forget plays a restart of the operator.
func (b *bees) forget() { b.reconciler = b.newReconciler(b.client) }

func (b *bees) setup() *v1alpha1.FluxSetup {
	b.t.Helper()
	return fetch[v1alpha1.FluxSetup](b)
}

// jobs are all Jobs of the namespace, by name. The order is that of the attempts.
func (b *bees) jobs() []batchv1.Job {
	b.t.Helper()
	var jobs batchv1.JobList
	b.Expect(b.client.List(b.ctx, &jobs, client.InNamespace(b.namespace))).To(Succeed())
	return jobs.Items
}

// job is the Job of the newest attempt that has one; nil if there is none.
func (b *bees) job() *batchv1.Job {
	b.t.Helper()
	return last(b.jobs())
}

func (b *bees) configMap() *corev1.ConfigMap {
	b.t.Helper()
	var configMaps corev1.ConfigMapList
	b.Expect(b.client.List(b.ctx, &configMaps, client.InNamespace(b.namespace))).To(Succeed())
	return last(configMaps.Items)
}

func (b *bees) secret() *corev1.Secret {
	b.t.Helper()
	var secrets corev1.SecretList
	b.Expect(b.client.List(b.ctx, &secrets, client.InNamespace(b.namespace))).To(Succeed())
	return last(secrets.Items)
}

func last[T any](items []T) *T {
	if len(items) == 0 {
		return nil
	}
	return &items[len(items)-1]
}

// fetch returns the object "bees" of one kind; nil if there is none.
func fetch[T any, O interface {
	*T
	client.Object
}](b *bees) O {
	b.t.Helper()
	return fetchNamed[T, O](b, "bees")
}

func fetchNamed[T any, O interface {
	*T
	client.Object
}](b *bees, name string) O {
	b.t.Helper()
	object := O(new(T))
	err := b.client.Get(b.ctx, b.key(name), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.Expect(err).NotTo(HaveOccurred())
	return object
}

// expect asserts status and reason of a condition, and that it speaks of the present spec. It returns its
// message.
func (b *bees) expect(kind string, status metav1.ConditionStatus, reason string) string {
	b.t.Helper()
	setup := b.setup()
	condition := ptr.Deref(apimeta.FindStatusCondition(setup.Status.Conditions, kind), metav1.Condition{})
	b.Expect(condition.Status).To(Equal(status), "%s: %s", kind, condition.Message)
	b.Expect(condition.Reason).To(Equal(reason), "%s: %s", kind, condition.Message)
	b.Expect(condition.ObservedGeneration).To(Equal(setup.Generation))
	b.Expect(setup.Status.ObservedGeneration).To(Equal(setup.Generation))
	b.Expect(setup.Status.Attempt).To(Equal(setup.Spec.Attempt))
	return condition.Message
}

// running brings an attempt to its quorum.
func (b *bees) running() {
	b.t.Helper()
	b.pass()
	b.startPods()
	for rank := range b.pods() {
		b.ready(rank)
	}
	b.pass()
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// through is the client with some calls replaced.
func (b *bees) through(funcs interceptor.Funcs) client.Client {
	b.t.Helper()
	withWatch, err := client.NewWithWatch(b.config, client.Options{Scheme: scheme})
	b.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(withWatch, funcs)
}

// staleJobs is a client whose reads of Jobs show what they showed when it was made.
func staleJobs(b *bees) client.Client {
	b.t.Helper()
	then := b.jobs()
	return b.through(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			job, ok := object.(*batchv1.Job)
			if !ok {
				return c.Get(ctx, key, object, opts...)
			}
			for i := range then {
				if then[i].Name == key.Name {
					then[i].DeepCopyInto(job)
					return nil
				}
			}
			return apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			jobs, ok := list.(*batchv1.JobList)
			if !ok {
				return c.List(ctx, list, opts...)
			}
			var options client.ListOptions
			options.ApplyOptions(opts)
			for i := range then {
				if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(then[i].Labels)) {
					jobs.Items = append(jobs.Items, *then[i].DeepCopy())
				}
			}
			return nil
		},
	})
}

// stale is a client whose reads of T, by its name, show what they showed when it was made.
func stale[T any, O interface {
	*T
	client.Object
	DeepCopyInto(*T)
}](b *bees, name string) client.Client {
	b.t.Helper()
	then := fetchNamed[T, O](b, name)
	return b.through(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			asked, ok := object.(O)
			if !ok {
				return c.Get(ctx, key, object, opts...)
			}
			if then == nil {
				return apierrors.NewNotFound(batchv1.Resource("any"), key.Name)
			}
			then.DeepCopyInto((*T)(asked))
			return nil
		},
	})
}
