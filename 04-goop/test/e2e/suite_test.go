// Package e2e tests the Goop operator on a cluster: on kind with commands that run on three nodes, and on the embedded
// cluster, without specs that need containers, with pods that a small kubelet of this suite simulates.
package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// patience is how long containers may take to start or to terminate. Six specs run in parallel, with workers on each of
// three nodes, which keeps a small machine busy.
const patience = 3 * time.Minute

// The images, and the targets of the Dockerfile that build them, are read from the stage.
var env = e2e.Suite(e2e.Stage{
	Name:         "04-goop",
	Dir:          "../..",
	AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	OperatorArgs: e2e.ShortLease,
	Prepare:      buildPlugin,
})

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "04-goop")
}

// testEnv is one spec's namespace in the cluster.
type testEnv struct {
	ctx       context.Context
	namespace string
}

func newTestEnv(ctx SpecContext, options ...e2e.NamespaceOption) *testEnv {
	GinkgoHelper()
	w := &testEnv{ctx: ctx, namespace: env.Namespace(ctx, append(options, e2e.ManualPods)...)}
	w.simulate()
	return w
}

// spec declares a spec that runs on both kinds of cluster and changes no node.
func spec(name string, body func(*testEnv)) {
	It(name, Offset(1), func(ctx SpecContext) { body(newTestEnv(ctx)) })
}

// onContainers declares a spec that needs running containers.
func onContainers(name string, body func(*testEnv), options ...e2e.NamespaceOption) {
	It(name, Offset(1), Label(e2e.LabelContainers), func(ctx SpecContext) { body(newTestEnv(ctx, options...)) })
}

// everywhere tolerates the taint of the control plane, so that a kind cluster has three eligible nodes.
var everywhere = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}

// create creates a Goop. If its spec has no tolerations, it may use every node.
func (w *testEnv) create(name string, spec v1alpha1.GoopSpec) *v1alpha1.Goop {
	GinkgoHelper()
	if spec.Tolerations == nil {
		spec.Tolerations = everywhere
	}
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	Expect(env.Client.Create(w.ctx, goop)).To(Succeed())
	return goop
}

func (w *testEnv) change(goop *v1alpha1.Goop, mutate func(*v1alpha1.GoopSpec)) {
	GinkgoHelper()
	Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(goop), goop)).To(Succeed())
		mutate(&goop.Spec)
		g.Expect(env.Client.Update(w.ctx, goop)).To(Succeed())
	}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
}

// until waits until an object exists and satisfies what check asserts.
func until[T client.Object](w *testEnv, object T, check func(Gomega, T)) {
	GinkgoHelper()
	Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
}

// always asserts that an object satisfies check now, and for a while.
func always[T client.Object](w *testEnv, object T, check func(Gomega, T)) {
	GinkgoHelper()
	Consistently(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(Succeed())
}

// gone waits until objects no longer exist.
func (w *testEnv) gone(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(w.ctx, func() bool {
			return apierrors.IsNotFound(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object))
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(BeTrue(), "%T %s still exists", object, object.GetName())
	}
}

func (w *testEnv) delete(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(env.Client.Delete(w.ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
}

// has waits until a Goop has a condition of its current generation, and returns the condition.
func (w *testEnv) has(goop *v1alpha1.Goop, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	var found metav1.Condition
	until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
		found = condition(g, live.Status.Conditions, conditionType, status, reason)
		g.Expect(found.ObservedGeneration).To(Equal(live.Generation), "of an older generation")
	})
	return found
}

// condition asserts that a condition exists with a status and, unless it is empty, a reason, and returns it.
func condition(g Gomega, conditions []metav1.Condition, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	found := apimeta.FindStatusCondition(conditions, conditionType)
	g.Expect(found).NotTo(BeNil(), "no condition %s, only %s", conditionType, format.Object(conditions, 1))
	what := fmt.Sprintf("condition %s is %s %s: %s", conditionType, found.Status, found.Reason, found.Message)
	g.Expect(found.Status).To(Equal(status), what)
	if reason != "" {
		g.Expect(found.Reason).To(Equal(reason), what)
	}
	return *found
}

// running waits until a number of workers of a Goop is running.
func (w *testEnv) running(goop *v1alpha1.Goop, workers int) {
	GinkgoHelper()
	until(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeEquivalentTo(workers)) })
}

// complete waits until a number of workers of a Goop has ended with 0, and none with another exit code.
func (w *testEnv) complete(goop *v1alpha1.Goop, workers int) {
	GinkgoHelper()
	w.has(goop, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	Expect(goop.Status.Succeeded).To(BeEquivalentTo(workers))
	Expect(goop.Status.Desired).To(BeEquivalentTo(workers))
	Expect(goop.Status.Failed).To(BeZero())
	Expect(goop.Status.ExitCode).To(HaveValue(BeZero()))
	Expect(goop.Status.Failures).To(BeEmpty())
	Expect(apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	Expect(goop.Status.CompletionTime).NotTo(BeNil())
}

// failed waits until a Goop is Failed, and not Complete, and returns the message.
func (w *testEnv) failed(goop *v1alpha1.Goop, reason string) (message string) {
	GinkgoHelper()
	message = w.has(goop, v1alpha1.ConditionFailed, metav1.ConditionTrue, reason).Message
	Expect(apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionComplete)).To(BeNil())
	Expect(goop.Status.CompletionTime).NotTo(BeNil())
	return message
}

// suspended waits until a Goop is suspended, with a number of pods left.
func (w *testEnv) suspended(goop *v1alpha1.Goop, pods int) {
	GinkgoHelper()
	w.has(goop, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	Expect(w.pods(goop)).To(HaveLen(pods))
}
