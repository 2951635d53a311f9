// Package e2e proves the Goop operator on a cluster: on kind really, with commands that run on three nodes; on the
// embedded cluster all that needs no container, with pods that do what a small kubelet of this suite says.
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

// patience is how long containers may take to start or to end. Six specs side by side, with workers on each of three
// nodes, keep a small machine busy.
const patience = 3 * time.Minute

// atOnce is how many specs are under way at a time where they run side by side: each has a few pods, and waits
// for them most of the time.
const atOnce = 6

// What images there are, and which targets of the Dockerfile make them, is read from the stage.
var env = e2e.Suite(e2e.Stage{
	Name:        "04-goop",
	Dir:         "../..",
	AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
})

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "04-goop")
}

// world is one spec's namespace in the cluster. Its methods assert with the spec's own Gomega, so that specs can
// run side by side.
type world struct {
	Gomega
	ctx       context.Context
	namespace string
}

// alone makes the world of a spec that has the cluster for itself.
func alone(ctx SpecContext) *world {
	GinkgoHelper()
	return &world{Gomega: Default, ctx: ctx, namespace: env.Namespace(ctx, e2e.ManualPods)}
}

// spec is one that runs beside others, on both kinds of cluster. It changes no node.
func spec(name string, body func(*world)) e2e.Scenario {
	return e2e.Scenario{
		Name:    name,
		Options: []e2e.NamespaceOption{e2e.ManualPods},
		Run: func(ctx context.Context, g Gomega, namespace string) {
			body(&world{Gomega: g, ctx: ctx, namespace: namespace})
		},
	}
}

// onContainers is a spec that needs containers that run.
func onContainers(name string, body func(*world), options ...e2e.NamespaceOption) e2e.Scenario {
	s := spec(name, body)
	s.Labels = Label(e2e.LabelContainers)
	s.Options = append(s.Options, options...)
	return s
}

// everywhere tolerates what keeps others away from the control plane: with it a kind cluster has three nodes.
var everywhere = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}

// create creates a Goop. It may use every node, unless the spec says otherwise.
func (w *world) create(name string, spec v1alpha1.GoopSpec) *v1alpha1.Goop {
	GinkgoHelper()
	if spec.Tolerations == nil {
		spec.Tolerations = everywhere
	}
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	w.Expect(env.Client.Create(w.ctx, goop)).To(Succeed())
	return goop
}

func (w *world) change(goop *v1alpha1.Goop, mutate func(*v1alpha1.GoopSpec)) {
	GinkgoHelper()
	w.Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(goop), goop)).To(Succeed())
		mutate(&goop.Spec)
		g.Expect(env.Client.Update(w.ctx, goop)).To(Succeed())
	}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
}

// until waits until an object is there and satisfies what check asserts.
func until[T client.Object](w *world, object T, check func(Gomega, T)) {
	GinkgoHelper()
	w.Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
}

// always asserts that an object satisfies check now, and does for a while.
func always[T client.Object](w *world, object T, check func(Gomega, T)) {
	GinkgoHelper()
	w.Consistently(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).WithTimeout(expect.AtRest).WithPolling(expect.Interval).Should(Succeed())
}

// gone waits until objects are not there any more.
func (w *world) gone(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		w.Eventually(w.ctx, func() bool {
			return apierrors.IsNotFound(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object))
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(BeTrue(), "%T %s is still there", object, object.GetName())
	}
}

func (w *world) delete(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		w.Expect(env.Client.Delete(w.ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
}

// has waits until a Goop has a condition, for its present generation, and returns the condition.
func (w *world) has(goop *v1alpha1.Goop, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	var found metav1.Condition
	until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
		found = condition(g, live.Status.Conditions, conditionType, status, reason)
		g.Expect(found.ObservedGeneration).To(Equal(live.Generation), "of an older generation")
	})
	return found
}

// condition asserts that a condition is there with a status and, unless it is empty, a reason, and returns it.
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

// running waits until so many workers of a Goop are at work.
func (w *world) running(goop *v1alpha1.Goop, workers int) {
	GinkgoHelper()
	until(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeEquivalentTo(workers)) })
}

// complete waits until so many workers of a Goop have ended with 0, and none in another way.
func (w *world) complete(goop *v1alpha1.Goop, workers int) {
	GinkgoHelper()
	w.has(goop, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	w.Expect(goop.Status.Succeeded).To(BeEquivalentTo(workers))
	w.Expect(goop.Status.Desired).To(BeEquivalentTo(workers))
	w.Expect(goop.Status.Failed).To(BeZero())
	w.Expect(goop.Status.ExitCode).To(HaveValue(BeZero()))
	w.Expect(goop.Status.Failures).To(BeEmpty())
	w.Expect(apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	w.Expect(goop.Status.CompletionTime).NotTo(BeNil())
}

// failed waits until a Goop is Failed, and not Complete, and returns what it says.
func (w *world) failed(goop *v1alpha1.Goop, reason string) (message string) {
	GinkgoHelper()
	message = w.has(goop, v1alpha1.ConditionFailed, metav1.ConditionTrue, reason).Message
	w.Expect(apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionComplete)).To(BeNil())
	w.Expect(goop.Status.CompletionTime).NotTo(BeNil())
	return message
}

// suspended waits until a Goop is, with so many pods left.
func (w *world) suspended(goop *v1alpha1.Goop, pods int) {
	GinkgoHelper()
	w.has(goop, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.Expect(w.pods(goop)).To(HaveLen(pods))
}
