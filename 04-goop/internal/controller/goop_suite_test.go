package controller

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// testLabel is on the nodes of one test. Nodes have no namespace, so those of other tests exist at the same time.
const testLabel = "example.com/test"

var testImages = Images{Operator: "example.com/operator:1", Worker: "example.com/busybox:1"}

// goopTestEnv is a testEnv with nodes, the controller, and one Goop, "job". The test simulates the DaemonSet controller
// and the kubelets.
type goopTestEnv struct {
	*testEnv
	reconciler *GoopReconciler
	requests   *requests
	// pods counts how many pods were created, by node and round: how often work has begun.
	pods map[string]int
}

func newGoopTestEnv(t *testing.T, nodes ...string) *goopTestEnv {
	t.Helper()
	f := &goopTestEnv{testEnv: newTestEnv(t), pods: map[string]int{}, requests: &requests{}}
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

// use replaces the reconciler by a new one without in-memory state, as after a restart.
func (f *goopTestEnv) use() {
	config := rest.CopyConfig(f.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.requests.next = next
		return f.requests
	})
	// The requests of the mapper are not the controller's own.
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	allow := f.reconciler != nil && f.reconciler.allowHostAccess
	f.reconciler = NewGoopReconciler(indexed(c), c, f.events, f.clock, testImages, allow)
}

// watching returns the reconciler's client without the back-off of retries, so that a test can wrap it.
func (f *goopTestEnv) watching() client.WithWatch {
	c := f.reconciler.Client
	if gated, ok := c.(gatedClient); ok {
		c = gated.Client
	}
	return c.(client.WithWatch)
}

// reconciles calls Reconcile n times. Neither the simulated controllers run nor the clock advances.
func (f *goopTestEnv) reconciles(n int) {
	for range n {
		_, err := f.reconcile()
		f.Expect(err == nil || isRejected(err)).To(BeTrue(), "%v", err)
	}
}

// spec returns the spec of a small Goop on the nodes of this test.
func (f *goopTestEnv) spec(change ...func(*v1alpha1.GoopSpec)) v1alpha1.GoopSpec {
	s := v1alpha1.GoopSpec{Cmd: []string{"hostname"}, NodeSelector: map[string]string{testLabel: f.namespace}}
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

// create creates the Goop, and runs the controllers until they settle.
func (f *goopTestEnv) create(change ...func(*v1alpha1.GoopSpec)) {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.settle()
}

// change changes the spec of the Goop, and runs the controllers until they settle.
func (f *goopTestEnv) change(change func(*v1alpha1.GoopSpec)) {
	goop := f.goop()
	change(&goop.Spec)
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.settle()
}

// delete deletes the Goop, and runs the controllers until they settle. The clock advances to that of the API server.
func (f *goopTestEnv) delete() {
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.settle()
}

func (f *goopTestEnv) reconcile() (ctrl.Result, error) {
	return f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key()})
}

// settle runs the controller and the simulated ones until none has anything to do, or until the controller waits for
// longer than the throttle requires. After an error the reconciler is replaced by a new one without in-memory state.
func (f *goopTestEnv) settle() {
	f.requests.failed = 0
	for range 1000 {
		before, status := f.requests.written(), f.requests.writes["PATCH goops/job/status"]
		f.requests.read = 0
		result, err := f.reconcile()
		// A status write because of a failed read, or of its end, is no progress.
		if err == nil && f.requests.written()-before > f.requests.writes["PATCH goops/job/status"]-status {
			f.requests.failed = 0
		}
		switch {
		// It is retried with the queue's back-off, until something else changes.
		case isRejected(err) && f.requests.written() == before && !f.simulateDaemonSets():
			return
		case isRejected(err):
		case err != nil:
			f.Expect(errors.Is(err, errCrash) || errors.Is(err, errStale)).To(BeTrue(), "%v", err)
			f.use()
		case f.simulateDaemonSets() || f.requests.written() > before:
		case result.RequeueAfter > 0 && result.RequeueAfter <= 2*writeInterval:
			f.clock.Step(result.RequeueAfter)
		default:
			return
		}
	}
	f.Expect(errors.New("there is always something to do")).NotTo(HaveOccurred(), "the reconciler does not settle")
}

func (f *goopTestEnv) goop() *v1alpha1.Goop {
	var goop v1alpha1.Goop
	f.Expect(f.client.Get(f.ctx, f.key(), &goop)).To(Succeed())
	return &goop
}

// gone reports whether the Goop no longer exists.
func (f *goopTestEnv) gone() bool {
	return client.IgnoreNotFound(f.client.Get(f.ctx, f.key(), &v1alpha1.Goop{})) == nil &&
		f.client.Get(f.ctx, f.key(), &v1alpha1.Goop{}) != nil
}

func (f *goopTestEnv) daemonSets() map[string]*appsv1.DaemonSet {
	var list appsv1.DaemonSetList
	f.Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace))).To(Succeed())
	all := map[string]*appsv1.DaemonSet{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (f *goopTestEnv) shards() []corev1.ConfigMap {
	var list corev1.ConfigMapList
	f.Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace), client.MatchingLabels{v1alpha1.LabelGoop: "job"})).To(Succeed())
	return list.Items
}

// record reads the record.
func (f *goopTestEnv) record() *record.Record {
	texts := map[int]string{}
	for _, shard := range f.shards() {
		number, _ := shardNumber("job", shard.Name)
		texts[number] = shard.Data[record.Key]
	}
	r, err := record.Read(texts, len(texts))
	f.Expect(err).NotTo(HaveOccurred())
	return r
}

// expect asserts status and reason of a condition, and that it is about the current spec.
func (f *goopTestEnv) expect(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	goop := f.goop()
	condition := conditionOf(goop.Status.Conditions, kind)
	f.Expect(condition.Status).To(Equal(status), "%s: %s: %s", kind, condition.Reason, condition.Message)
	f.Expect(condition.Reason).To(Equal(reason), "%s: %s", kind, condition.Message)
	f.Expect(condition.ObservedGeneration).To(Equal(goop.Generation), kind)
	f.Expect(goop.Status.ObservedGeneration).To(Equal(goop.Generation))
	return condition
}

func (f *goopTestEnv) expectRunning(reason string) metav1.Condition {
	return f.expect(v1alpha1.ConditionRunning, metav1.ConditionTrue, reason)
}

func (f *goopTestEnv) expectNotRunning(reason string) metav1.Condition {
	return f.expect(v1alpha1.ConditionRunning, metav1.ConditionFalse, reason)
}

// expectCounts asserts desired, running, succeeded and failed.
func (f *goopTestEnv) expectCounts(desired, running, succeeded, failed int32) {
	status := f.goop().Status
	f.Expect([]int32{status.Desired, status.Running, status.Succeeded, status.Failed}).To(
		Equal([]int32{desired, running, succeeded, failed}), "desired, running, succeeded, failed")
}

// expectSteadyState asserts that reconciliations write nothing, before and after a restart.
func (f *goopTestEnv) expectSteadyState() {
	f.settle()
	f.recorded()
	before := f.requests.written()
	for range 3 {
		f.clock.Step(time.Minute)
		_, err := f.reconcile()
		f.Expect(err).NotTo(HaveOccurred())
		f.use()
	}
	f.Expect(f.requests.written()).To(Equal(before), "writes in steady state: %v", f.requests.writes)
	f.Expect(f.recorded()).To(BeEmpty())
}

func newRecord() *record.Record {
	empty, err := record.Read(nil, 0)
	if err != nil {
		panic(err)
	}
	return empty
}
