// Package e2e proves the Flux operator on a cluster: on kind really, with brokers in containers that find each
// other over the network; on the embedded cluster all that needs none, with pods that do what a spec says. The
// brokers are those of the image in FLUX_IMAGE, or else of the stand-in, which is no Flux.
package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// patience is how long containers may take to start or to end. Six specs that run real brokers side by side keep a
// small machine busy.
const patience = 3 * time.Minute

// atOnce is how many specs are under way at a time where they run side by side: each has a few pods, and waits
// for them most of the time.
const atOnce = 6

var env = e2e.Suite(e2e.Stage{
	Name:        "03-flux",
	Dir:         "../..",
	Images:      map[string]string{"controller": "manager"},
	AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
})

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "03-flux")
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

// spec is one that runs beside others, on both kinds of cluster.
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

// create creates a Flux. Its image is the suite's, unless the spec names another.
func (w *world) create(name string, spec v1alpha1.FluxSpec) *v1alpha1.Flux {
	GinkgoHelper()
	if spec.Image == "" {
		spec.Image = brokerImage
	}
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	w.Expect(env.Client.Create(w.ctx, flux)).To(Succeed())
	return flux
}

func (w *world) change(flux *v1alpha1.Flux, mutate func(*v1alpha1.FluxSpec)) {
	GinkgoHelper()
	w.Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(flux), flux)).To(Succeed())
		mutate(&flux.Spec)
		g.Expect(env.Client.Update(w.ctx, flux)).To(Succeed())
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

// has waits until a Flux has a condition, for its present generation, and returns the condition.
func (w *world) has(flux *v1alpha1.Flux, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	var found metav1.Condition
	until(w, flux, func(g Gomega, f *v1alpha1.Flux) {
		found = condition(g, f.Status.Conditions, conditionType, status, reason)
		g.Expect(found.ObservedGeneration).To(Equal(f.Generation), "of an older generation")
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

// attempt waits until a Flux's brokers are to be started for the nth time.
func (w *world) attempt(flux *v1alpha1.Flux, n int32) {
	GinkgoHelper()
	until(w, setupOf(flux), func(g Gomega, setup *v1alpha1.FluxSetup) { g.Expect(setup.Spec.Attempt).To(BeNumerically(">=", n)) })
}

// running has the brokers of a Flux find each other, and waits until the command runs.
func (w *world) running(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.begin(flux)
	w.has(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// complete has the command of a Flux succeed, and waits until that is told.
func (w *world) complete(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.begin(flux)
	w.endLeader(flux, 0, "")
	w.has(flux, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	w.Expect(flux.Status.ExitCode).To(HaveValue(BeZero()))
	w.Expect(apimeta.FindStatusCondition(flux.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	w.Expect(flux.Status.CompletionTime).NotTo(BeNil())
}

// failed waits until a Flux is Failed, and not Complete, and returns what it says.
func (w *world) failed(flux *v1alpha1.Flux, reason string) (message string) {
	GinkgoHelper()
	message = w.has(flux, v1alpha1.ConditionFailed, metav1.ConditionTrue, reason).Message
	w.Expect(apimeta.FindStatusCondition(flux.Status.Conditions, v1alpha1.ConditionComplete)).To(BeNil())
	w.Expect(flux.Status.CompletionTime).NotTo(BeNil())
	return message
}
