package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// scenarioRun is one run of a scenario.
type scenarioRun struct {
	gomega.Gomega
	*Env
	ctx     context.Context
	markers int
}

// soon waits until check holds.
func (s *scenarioRun) soon(check func(g gomega.Gomega)) {
	s.Eventually(s.ctx, check).WithTimeout(s.Soon).WithPolling(s.Interval).Should(gomega.Succeed())
}

// always asserts that check holds for a while.
func (s *scenarioRun) always(check func(g gomega.Gomega)) {
	s.Consistently(s.ctx, check).WithTimeout(s.SteadyState).WithPolling(s.Interval).Should(gomega.Succeed())
}

// foo returns a Foo that is not created yet.
func (s *scenarioRun) foo(name, deploymentName string, replicas *int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: replicas},
	}
}

// create creates a Foo of one replica.
func (s *scenarioRun) create(name, deploymentName string) *v1alpha1.Foo {
	f := s.foo(name, deploymentName, nil)
	s.Expect(s.Client.Create(s.ctx, f)).To(gomega.Succeed())
	return f
}

// createReady creates a Foo and waits until it is Ready.
func (s *scenarioRun) createReady(name, deploymentName string) *v1alpha1.Foo {
	f := s.create(name, deploymentName)
	s.expectAvailable(f, 1)
	return f
}

// change changes the spec of a Foo.
func (s *scenarioRun) change(f *v1alpha1.Foo, mutate func(*v1alpha1.FooSpec)) {
	update(s, f, func(f *v1alpha1.Foo) { mutate(&f.Spec) })
}

// update changes an object, and tries again after a Conflict.
func update[O client.Object](s *scenarioRun, object O, mutate func(O)) {
	s.soon(func(g gomega.Gomega) {
		s.get(g, object)
		mutate(object)
		g.Expect(s.Client.Update(s.ctx, object)).To(gomega.Succeed())
	})
}

// get reads an object again.
func (s *scenarioRun) get(g gomega.Gomega, object client.Object) {
	g.Expect(s.Client.Get(s.ctx, client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
}

// expect waits until the condition Ready has a status and a reason for the present spec.
func (s *scenarioRun) expect(f *v1alpha1.Foo, status metav1.ConditionStatus, reason string) metav1.Condition {
	var ready metav1.Condition
	s.soon(func(g gomega.Gomega) {
		s.get(g, f)
		ready = foo.ReadyOf(f.Status)
		g.Expect(ready.Reason).To(gomega.Equal(reason), "Foo %s: %s", f.Name, ready.Message)
		g.Expect(ready.Status).To(gomega.Equal(status))
		g.Expect(ready.ObservedGeneration).To(gomega.Equal(f.Generation))
		g.Expect(f.Status.ObservedGeneration).To(gomega.Equal(f.Generation))
	})
	return ready
}

// expectAvailable waits until the Foo's Deployment has a number of replicas, and until the Foo reports them as available. It
// simulates the rollout where no controller does it.
func (s *scenarioRun) expectAvailable(f *v1alpha1.Foo, replicas int32) {
	s.expectDesired(f, replicas)
	s.rollOut(f.Spec.DeploymentName)
	status, reason := metav1.ConditionTrue, v1alpha1.ReasonAvailable
	if replicas == 0 {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonScaledToZero
	}
	s.expect(f, status, reason)
	s.Expect(f.Status.AvailableReplicas).To(gomega.Equal(replicas))
	s.Expect(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)).To(gomega.BeNil())
}

// expectDesired waits until the Foo owns a Deployment with a desired number of replicas.
func (s *scenarioRun) expectDesired(f *v1alpha1.Foo, replicas int32) (deployment *appsv1.Deployment) {
	s.soon(func(g gomega.Gomega) {
		deployment = s.find(g, f.Spec.DeploymentName)
		g.Expect(metav1.IsControlledBy(deployment, f)).To(gomega.BeTrue(), "owners: %v", deployment.OwnerReferences)
		g.Expect(deployment.Spec.Replicas).To(gomega.HaveValue(gomega.Equal(replicas)))
	})
	return deployment
}

func (s *scenarioRun) rollOut(name string) {
	if s.RollOut != nil {
		key := client.ObjectKey{Namespace: s.Namespace, Name: name}
		s.soon(func(g gomega.Gomega) { g.Expect(s.RollOut(s.ctx, key)).To(gomega.Succeed()) })
	}
}

func (s *scenarioRun) deployment(name string) *appsv1.Deployment { return s.find(s, name) }

func (s *scenarioRun) find(g gomega.Gomega, name string) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.get(g, deployment)
	return deployment
}

func (s *scenarioRun) delete(object client.Object) {
	s.Expect(s.Client.Delete(s.ctx, object)).To(gomega.Succeed())
}

// deleteWithDependent deletes a Foo and waits until its Deployment is deleted too, by the garbage collector or, where there is
// none, by the test.
func (s *scenarioRun) deleteWithDependent(f *v1alpha1.Foo) {
	deployment := s.deployment(f.Spec.DeploymentName)
	s.Expect(metav1.IsControlledBy(deployment, f)).To(gomega.BeTrue())
	s.delete(f)
	s.expectCaughtUp()
	if s.RollOut != nil {
		s.delete(deployment)
	}
	s.expectGone(deployment)
}

// expectCaughtUp waits until the operator has received all events of Foos so far, by a Foo that is created after them. Before
// that it creates the Deployment of a deleted Foo again, as expected.
func (s *scenarioRun) expectCaughtUp() {
	s.markers++
	name := fmt.Sprintf("marker-%d", s.markers)
	s.expectDesired(s.create(name, name), 1)
}

// expectGone waits until the object is deleted. There may be another one of its name.
func (s *scenarioRun) expectGone(object client.Object) {
	uid := object.GetUID()
	live := object.DeepCopyObject().(client.Object)
	s.soon(func(g gomega.Gomega) {
		if err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(object), live); !apierrors.IsNotFound(err) {
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(live.GetUID()).NotTo(gomega.Equal(uid), "it still exists")
		}
	})
}

// expectEvents waits until the Events about a Foo have these types and reasons, in the order of their time, and asserts that
// there is no other one.
func (s *scenarioRun) expectEvents(f *v1alpha1.Foo, want ...string) {
	check := func(g gomega.Gomega) { g.Expect(s.events(g, f)).To(gomega.Equal(want)) }
	s.soon(check)
	s.always(check)
}

func (s *scenarioRun) events(g gomega.Gomega, f *v1alpha1.Foo) []string {
	var list eventsv1.EventList
	g.Expect(s.Client.List(s.ctx, &list, client.InNamespace(s.Namespace))).To(gomega.Succeed())
	list.Items = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.UID != f.UID })
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	all := []string{}
	for _, event := range list.Items {
		g.Expect(event.ReportingController).To(gomega.Equal(foo.FieldOwner))
		g.Expect(event.Note).NotTo(gomega.BeEmpty())
		all = append(all, event.Type+" "+event.Reason)
	}
	return all
}

// Types and reasons of Events, for expectEvents.
const (
	available        = corev1.EventTypeNormal + " " + v1alpha1.ReasonAvailable
	scaledToZero     = corev1.EventTypeNormal + " " + v1alpha1.ReasonScaledToZero
	nameConflict     = corev1.EventTypeWarning + " " + v1alpha1.ReasonNameConflict
	applyFailed      = corev1.EventTypeWarning + " " + v1alpha1.ReasonApplyFailed
	apiError         = corev1.EventTypeWarning + " " + v1alpha1.ReasonAPIError
	podsNotCreated   = corev1.EventTypeWarning + " " + v1alpha1.ReasonPodsNotCreated
	noProgress       = corev1.EventTypeWarning + " " + v1alpha1.ReasonProgressDeadlineExceeded
	retriesExhausted = corev1.EventTypeWarning + " " + v1alpha1.ReasonRetriesExhausted
)
