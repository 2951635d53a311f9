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

// setupTestEnv is a testEnv with one Flux and its FluxSetup, both named "bees", and the FluxSetup controller. The test
// simulates the Flux controller, the Job controller, the garbage collector and the kubelets.
type setupTestEnv struct {
	*testEnv
	t          *testing.T
	flux       *v1alpha1.Flux
	reconciler *FluxSetupReconciler
}

// newSetupTestEnv creates a Flux and its FluxSetup. Its clock starts at the API server's time.
func newSetupTestEnv(t *testing.T, spec v1alpha1.FluxSpec) *setupTestEnv {
	t.Helper()
	b := &setupTestEnv{testEnv: newTestEnv(t), t: t}
	b.clock.SetTime(time.Now().Truncate(time.Second))
	b.reconciler = b.newReconciler(b.client)
	b.flux = b.makeFlux(spec)
	b.applySetup(firstSetup(b.flux))
	b.recordSetup()
	return b
}

// recordSetup simulates the Flux controller, which records the FluxSetup that it has created.
func (b *setupTestEnv) recordSetup() {
	b.t.Helper()
	b.flux.Status.SetupRef = &v1alpha1.SetupReference{Name: "bees", UID: string(b.setup().UID)}
	b.Expect(b.client.Status().Update(b.ctx, b.flux)).To(Succeed())
}

// fluxOf is a spec of the given size.
func fluxOf(size int32) v1alpha1.FluxSpec {
	return v1alpha1.FluxSpec{Image: "flux", Command: []string{"hostname"}, Size: size}
}

func (b *setupTestEnv) newReconciler(c client.Client) *FluxSetupReconciler {
	return NewFluxSetupReconciler(c, b.client, b.clock)
}

func (b *setupTestEnv) makeFlux(spec v1alpha1.FluxSpec) *v1alpha1.Flux {
	b.t.Helper()
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}, Spec: spec}
	b.Expect(b.client.Create(b.ctx, flux)).To(Succeed())
	return flux
}

func (b *setupTestEnv) applySetup(setup *v1alpha1.FluxSetup) {
	b.t.Helper()
	b.Expect(b.client.Apply(b.ctx, applyConfigurationOf(setup), client.FieldOwner(fluxFieldOwner), client.ForceOwnership)).To(Succeed())
}

// change simulates the Flux controller, which changes the FluxSetup.
func (b *setupTestEnv) change(mutate func(*v1alpha1.FluxSetupSpec)) {
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

// restart simulates the Flux controller, which starts the next attempt.
func (b *setupTestEnv) restart() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) {
		spec.Attempt++
		spec.Restarts++
	})
}

func (b *setupTestEnv) try() (ctrl.Result, error) {
	return b.reconciler.Reconcile(b.ctx, ctrl.Request{NamespacedName: b.key("bees")})
}

// reconcile reconciles once, which must not fail, and returns the FluxSetup after it.
func (b *setupTestEnv) reconcile() *v1alpha1.FluxSetup {
	b.t.Helper()
	_, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	return b.setup()
}

// use replaces the client of the operator, which keeps what it remembers.
func (b *setupTestEnv) use(c client.Client) { b.reconciler.Client = gatedClient{c} }

// forget simulates a restart of the operator.
func (b *setupTestEnv) forget() { b.reconciler = b.newReconciler(b.client) }

func (b *setupTestEnv) setup() *v1alpha1.FluxSetup {
	b.t.Helper()
	return fetch[v1alpha1.FluxSetup](b)
}

// jobs are all Jobs of the namespace, ordered by name, which is the order of their attempts.
func (b *setupTestEnv) jobs() []batchv1.Job {
	b.t.Helper()
	var jobs batchv1.JobList
	b.Expect(b.client.List(b.ctx, &jobs, client.InNamespace(b.namespace))).To(Succeed())
	return jobs.Items
}

// job is the Job of the newest attempt that has one; nil if there is none.
func (b *setupTestEnv) job() *batchv1.Job {
	b.t.Helper()
	return last(b.jobs())
}

func (b *setupTestEnv) configMap() *corev1.ConfigMap {
	b.t.Helper()
	var configMaps corev1.ConfigMapList
	b.Expect(b.client.List(b.ctx, &configMaps, client.InNamespace(b.namespace))).To(Succeed())
	return last(configMaps.Items)
}

func (b *setupTestEnv) secret() *corev1.Secret {
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
}](b *setupTestEnv) O {
	b.t.Helper()
	return fetchNamed[T, O](b, "bees")
}

func fetchNamed[T any, O interface {
	*T
	client.Object
}](b *setupTestEnv, name string) O {
	b.t.Helper()
	object := O(new(T))
	err := b.client.Get(b.ctx, b.key(name), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.Expect(err).NotTo(HaveOccurred())
	return object
}

// expect asserts status and reason of a condition, and that it is of the current generation. It returns the message.
func (b *setupTestEnv) expect(kind string, status metav1.ConditionStatus, reason string) string {
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
func (b *setupTestEnv) running() {
	b.t.Helper()
	b.reconcile()
	b.startPods()
	for rank := range b.pods() {
		b.ready(rank)
	}
	b.reconcile()
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// through is the client with some of its functions replaced.
func (b *setupTestEnv) through(funcs interceptor.Funcs) client.Client {
	b.t.Helper()
	withWatch, err := client.NewWithWatch(b.config, client.Options{Scheme: scheme, Mapper: b.client.RESTMapper()})
	b.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(withWatch, funcs)
}

// staleJobs is a client whose reads of Jobs return what existed when it was created.
func staleJobs(b *setupTestEnv) client.Client {
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

// stale is a client whose reads of T by name return what existed when it was created.
func stale[T any, O interface {
	*T
	client.Object
	DeepCopyInto(*T)
}](b *setupTestEnv, name string) client.Client {
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
