package controller

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// worldLabel is on the nodes of one test: they are the cluster's, and those of other tests are there too.
const worldLabel = "example.com/world"

var testImages = Images{Operator: "example.com/operator:1", Worker: "example.com/busybox:1"}

// field is a world with one Goop, "job", nodes, and the controller. The test plays the DaemonSet controller and the
// kubelets.
type field struct {
	*world
	reconciler *GoopReconciler
	requests   *requests
	// pods counts those that were ever made, by node and round: how often work was begun.
	pods map[string]int
}

func newField(t *testing.T, nodes ...string) *field {
	t.Helper()
	f := &field{world: newWorld(t), pods: map[string]int{}, requests: &requests{}}
	f.use()
	for _, node := range nodes {
		f.join(node)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(f.ctx)
		for i := range f.nodes() {
			_ = f.client.Delete(ctx, &f.nodes()[i])
		}
	})
	return f
}

// use gives the test a new reconciler, which remembers nothing: that is what a restart is.
func (f *field) use() {
	config := rest.CopyConfig(f.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.requests.next = next
		return f.requests
	})
	// The mapper and its discovery requests are not the controller's own.
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	allow := f.reconciler != nil && f.reconciler.allowHostAccess
	f.reconciler = NewGoopReconciler(indexed(c), c, f.events, f.clock, testImages, allow)
}

// indexed asks the API server for a label where the cache has an index.
func indexed(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			if options.FieldSelector != nil {
				goop, _ := options.FieldSelector.RequiresExactMatch(goopIndex)
				options.LabelSelector = labels.SelectorFromSet(labels.Set{v1alpha1.LabelGoop: goop})
				options.FieldSelector = fields.Everything()
			}
			return c.List(ctx, list, options)
		},
	})
}

// freeze gives the test a reconciler whose cache does not hear of the Goop any more.
func (f *field) freeze(goop *v1alpha1.Goop) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.reconciler.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if stale, ok := obj.(*v1alpha1.Goop); ok {
				goop.DeepCopyInto(stale)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// blind gives the test a reconciler whose cache has no object of a kind.
func (f *field) blind(kind client.Object) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.reconciler.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if reflect.TypeOf(obj) == reflect.TypeOf(kind) {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list).String() == reflect.TypeOf(kind).String()+"List" {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// passes lets only the controller work, for so many passes, and no time pass.
func (f *field) passes(n int) {
	for range n {
		_, err := f.reconcile()
		f.Expect(err == nil || isRejected(err)).To(BeTrue(), "%v", err)
	}
}

// spec is a small work on the nodes of this test.
func (f *field) spec(change ...func(*v1alpha1.GoopSpec)) v1alpha1.GoopSpec {
	s := v1alpha1.GoopSpec{Cmd: []string{"hostname"}, NodeSelector: map[string]string{worldLabel: f.namespace}}
	for _, one := range change {
		one(&s)
	}
	return s
}

func workers(n int32) func(*v1alpha1.GoopSpec) {
	return func(s *v1alpha1.GoopSpec) { s.JobCount = new(n) }
}

func failFast(s *v1alpha1.GoopSpec)  { s.FailurePolicy = v1alpha1.FailurePolicyFailFast }
func suspended(s *v1alpha1.GoopSpec) { s.Suspend = true }
func resumed(s *v1alpha1.GoopSpec)   { s.Suspend = false }

func ttl(seconds int32) func(*v1alpha1.GoopSpec) {
	return func(s *v1alpha1.GoopSpec) { s.TTLSecondsAfterFinished = new(seconds) }
}

func deadline(seconds int64) func(*v1alpha1.GoopSpec) {
	return func(s *v1alpha1.GoopSpec) { s.ActiveDeadlineSeconds = new(seconds) }
}

func cleanup(s *v1alpha1.GoopSpec) { s.CleanupCmd = []string{"rm", "-rf", "/tmp/job"} }

// create creates the Goop, and lets the controller do what it has to.
func (f *field) create(change ...func(*v1alpha1.GoopSpec)) {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.settle()
}

// change changes the spec of the Goop, and lets the controller do what it has to.
func (f *field) change(change func(*v1alpha1.GoopSpec)) {
	goop := f.goop()
	change(&goop.Spec)
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.settle()
}

// delete deletes the Goop, and lets the controller do what it has to. The clock goes on to the API server's.
func (f *field) delete() {
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.settle()
}

func (f *field) reconcile() (ctrl.Result, error) {
	return f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key()})
}

// settle lets Kubernetes and the controller work until neither has anything to do, or the controller waits for longer
// than its pace. A pass that fails is followed by a new reconciler, which remembers nothing.
func (f *field) settle() {
	f.requests.failed = 0
	for range 1000 {
		before, status := f.requests.written(), f.requests.writes["PATCH goops/job/status"]
		f.requests.read = 0
		result, err := f.reconcile()
		// A status that only says that a read failed, or no longer does, is nothing new to be read.
		if err == nil && f.requests.written()-before > f.requests.writes["PATCH goops/job/status"]-status {
			f.requests.failed = 0
		}
		switch {
		// It is repeated at the queue's pace, until something else changes.
		case isRejected(err) && f.requests.written() == before && !f.playDaemonSets():
			return
		case isRejected(err):
		case err != nil:
			f.Expect(errors.Is(err, errCrash) || errors.Is(err, errStale)).To(BeTrue(), "%v", err)
			f.use()
		case f.playDaemonSets() || f.requests.written() > before:
		case result.RequeueAfter > 0 && result.RequeueAfter <= 2*writePace:
			f.clock.Step(result.RequeueAfter)
		default:
			return
		}
	}
	f.Expect(errors.New("it never had nothing to do")).NotTo(HaveOccurred(), "the reconciler does not settle")
}

func (f *field) goop() *v1alpha1.Goop {
	var goop v1alpha1.Goop
	f.Expect(f.client.Get(f.ctx, f.key(), &goop)).To(Succeed())
	return &goop
}

// gone tells whether there is no Goop any more.
func (f *field) gone() bool {
	return client.IgnoreNotFound(f.client.Get(f.ctx, f.key(), &v1alpha1.Goop{})) == nil &&
		f.client.Get(f.ctx, f.key(), &v1alpha1.Goop{}) != nil
}

func (f *field) daemonSets() map[string]*appsv1.DaemonSet {
	var list appsv1.DaemonSetList
	f.Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace))).To(Succeed())
	all := map[string]*appsv1.DaemonSet{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (f *field) shards() []corev1.ConfigMap {
	var list corev1.ConfigMapList
	f.Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace), client.MatchingLabels{v1alpha1.LabelGoop: "job"})).To(Succeed())
	return list.Items
}

// record is what is recorded.
func (f *field) record() *record.Record {
	texts := map[int]string{}
	for _, shard := range f.shards() {
		number, _ := shardNumber("job", shard.Name)
		texts[number] = shard.Data[record.Key]
	}
	r, err := record.Read(texts)
	f.Expect(err).NotTo(HaveOccurred())
	return r
}

// expect asserts status and reason of a condition, and that it speaks of the present spec.
func (f *field) expect(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	goop := f.goop()
	condition := conditionOf(goop.Status.Conditions, kind)
	f.Expect(condition.Status).To(Equal(status), "%s: %s: %s", kind, condition.Reason, condition.Message)
	f.Expect(condition.Reason).To(Equal(reason), "%s: %s", kind, condition.Message)
	f.Expect(condition.ObservedGeneration).To(Equal(goop.Generation), kind)
	f.Expect(goop.Status.ObservedGeneration).To(Equal(goop.Generation))
	return condition
}

func (f *field) expectRunning(reason string) metav1.Condition {
	return f.expect(v1alpha1.ConditionRunning, metav1.ConditionTrue, reason)
}

func (f *field) expectNotRunning(reason string) metav1.Condition {
	return f.expect(v1alpha1.ConditionRunning, metav1.ConditionFalse, reason)
}

// expectCounts asserts desired, running, succeeded and failed.
func (f *field) expectCounts(desired, running, succeeded, failed int32) {
	status := f.goop().Status
	f.Expect([]int32{status.Desired, status.Running, status.Succeeded, status.Failed}).To(
		Equal([]int32{desired, running, succeeded, failed}), "desired, running, succeeded, failed")
}

// expectRest asserts that passes write nothing, before and after a restart.
func (f *field) expectRest() {
	f.settle()
	f.recorded()
	before := f.requests.written()
	for range 3 {
		f.clock.Step(time.Minute)
		_, err := f.reconcile()
		f.Expect(err).NotTo(HaveOccurred())
		f.use()
	}
	f.Expect(f.requests.written()).To(Equal(before), "writes at rest: %v", f.requests.writes)
	f.Expect(f.recorded()).To(BeEmpty())
}

func newRecord() *record.Record {
	empty, err := record.Read(nil)
	if err != nil {
		panic(err)
	}
	return empty
}
