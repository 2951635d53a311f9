// Package e2e tests the Flux operator on a cluster. On kind the brokers run in containers and connect over the network.
// On the embedded cluster the specs that need no containers run, with simulated pods. The brokers come from the image
// in FLUX_IMAGE, or else from the stand-in, which is no Flux.
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

// Many specs wait for restarts: they follow after a second and not after ten.
var env = e2e.Suite(e2e.Stage{
	Name:         "03-flux",
	Dir:          "../..",
	Images:       map[string]string{"controller": "manager"},
	AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	OperatorArgs: append([]string{"--restart-back-off=1s"}, e2e.ShortLease...),
	Prepare:      chooseImage,
})

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "03-flux")
}

// testEnv is one spec's namespace in the cluster.
type testEnv struct {
	ctx       context.Context
	namespace string
}

func newTestEnv(ctx SpecContext, options ...e2e.NamespaceOption) *testEnv {
	GinkgoHelper()
	return &testEnv{ctx: ctx, namespace: env.Namespace(ctx, append(options, e2e.ManualPods)...)}
}

// spec declares a spec that runs on both kinds of cluster.
func spec(name string, body func(*testEnv), options ...e2e.NamespaceOption) {
	It(name, Offset(1), func(ctx SpecContext) { body(newTestEnv(ctx, options...)) })
}

// onContainers declares a spec that needs running containers.
func onContainers(name string, body func(*testEnv), options ...e2e.NamespaceOption) {
	It(name, Offset(1), Label(e2e.LabelContainers), func(ctx SpecContext) { body(newTestEnv(ctx, options...)) })
}

// create creates a Flux. It uses the suite's image, unless the spec names another.
func (w *testEnv) create(name string, spec v1alpha1.FluxSpec) *v1alpha1.Flux {
	GinkgoHelper()
	if spec.Image == "" {
		spec.Image = env.Prepared
	}
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	Expect(env.Client.Create(w.ctx, flux)).To(Succeed())
	return flux
}

func (w *testEnv) change(flux *v1alpha1.Flux, mutate func(*v1alpha1.FluxSpec)) {
	GinkgoHelper()
	Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(flux), flux)).To(Succeed())
		mutate(&flux.Spec)
		g.Expect(env.Client.Update(w.ctx, flux)).To(Succeed())
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

// has waits until a Flux has a condition of its current generation, and returns the condition.
func (w *testEnv) has(flux *v1alpha1.Flux, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	var found metav1.Condition
	until(w, flux, func(g Gomega, f *v1alpha1.Flux) {
		found = condition(g, f.Status.Conditions, conditionType, status, reason)
		g.Expect(found.ObservedGeneration).To(Equal(f.Generation), "of an older generation")
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

// attempt waits until a Flux is in its nth attempt.
func (w *testEnv) attempt(flux *v1alpha1.Flux, n int32) {
	GinkgoHelper()
	until(w, setupOf(flux), func(g Gomega, setup *v1alpha1.FluxSetup) { g.Expect(setup.Spec.Attempt).To(BeNumerically(">=", n)) })
}

// running brings a Flux to its quorum, and waits until the command runs.
func (w *testEnv) running(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.begin(flux)
	w.has(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// complete lets the command of a Flux succeed, and waits until that is reported.
func (w *testEnv) complete(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.begin(flux)
	w.endLeader(flux, 0, "")
	w.has(flux, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	Expect(flux.Status.ExitCode).To(HaveValue(BeZero()))
	Expect(apimeta.FindStatusCondition(flux.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	Expect(flux.Status.CompletionTime).NotTo(BeNil())
}

// failed waits until a Flux is Failed, and not Complete, and returns the message.
func (w *testEnv) failed(flux *v1alpha1.Flux, reason string) (message string) {
	GinkgoHelper()
	message = w.has(flux, v1alpha1.ConditionFailed, metav1.ConditionTrue, reason).Message
	Expect(apimeta.FindStatusCondition(flux.Status.Conditions, v1alpha1.ConditionComplete)).To(BeNil())
	Expect(flux.Status.CompletionTime).NotTo(BeNil())
	return message
}
