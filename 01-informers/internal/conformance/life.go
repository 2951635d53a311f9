package conformance

import (
	"strconv"
	"strings"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// lifeScenarios are about a Foo without errors and conflicts.
var lifeScenarios = []Scenario{
	{"creates a Deployment for a Foo, and reports when its replicas are available", func(s *scenarioRun) {
		f := s.create("web", "web-server")
		s.expectDeployment(f)
		if s.RollOut != nil {
			s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			s.Expect(f.Status.AvailableReplicas).To(gomega.BeZero())
		}
		s.expectAvailable(f, 1)
		s.expectEvents(f, available)
	}},

	// kubectl prints nothing in the column of a field that is not stored.
	{"reports the number of available replicas in the first status", func(s *scenarioRun) {
		f := s.create("web", "web-server")
		s.soon(func(g gomega.Gomega) {
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Foo"))
			g.Expect(s.Client.Get(s.ctx, client.ObjectKeyFromObject(f), stored)).To(gomega.Succeed())
			status, _, err := unstructured.NestedMap(stored.Object, "status")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(status).NotTo(gomega.BeEmpty())
			s.Expect(status).To(gomega.HaveKey("availableReplicas"))
		})
	}},

	{"scales the Deployment with the Foo, to zero and back, with one Event for each transition", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		uid := s.deployment("web-server").UID
		for _, replicas := range []int32{3, 0, 2} {
			s.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(replicas) })
			s.expectAvailable(f, replicas)
		}
		s.Expect(s.deployment("web-server").UID).To(gomega.Equal(uid), "changed in place")
		s.expectEvents(f, available, available, scaledToZero, available)
	}},

	{"replaces the Deployment when deploymentName changes, and deletes the old one only after it has created the new one", func(s *scenarioRun) {
		f := s.createReady("web", "web-old")
		old := s.deployment("web-old")
		// The finalizer keeps it, so that the test can compare both.
		update(s, old, func(d *appsv1.Deployment) { controllerutil.AddFinalizer(d, "example.com/hold") })

		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		created := s.expectDesired(f, 1)
		s.soon(func(g gomega.Gomega) {
			s.get(g, old)
			g.Expect(old.DeletionTimestamp.IsZero()).To(gomega.BeFalse(), "it is being deleted")
		})
		s.Expect(old.DeletionTimestamp.Time).NotTo(gomega.BeTemporally("<", created.CreationTimestamp.Time))
		if s.RollOut != nil { // else other controllers have written to the old one since
			s.Expect(s.version(old)).To(gomega.BeNumerically(">", s.version(created)))
		}
		s.expectAvailable(f, 1)

		update(s, old, func(d *appsv1.Deployment) { controllerutil.RemoveFinalizer(d, "example.com/hold") })
		s.expectGone(old)
		s.expectAvailable(f, 1)
	}},

	{"leaves the Deployment of a deleted Foo to the garbage collector, and does not create it again", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		deployment := s.deployment("web-server")
		s.deleteWithDependent(f)
		s.expectGone(f)
		s.alwaysGone(deployment)
	}},

	{"does nothing for a Foo that is being deleted", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		update(s, f, func(f *v1alpha1.Foo) { controllerutil.AddFinalizer(f, "example.com/hold") })
		s.delete(f)
		s.expectCaughtUp()
		deployment := s.deployment("web-server")
		s.delete(deployment)
		s.expectGone(deployment)
		s.alwaysGone(deployment)
		update(s, f, func(f *v1alpha1.Foo) { controllerutil.RemoveFinalizer(f, "example.com/hold") })
		s.expectGone(f)
	}},

	{"works with the longest and the shortest names that are accepted", func(s *scenarioRun) {
		longest := strings.Repeat("n", 63)
		for _, name := range []string{longest, "9"} {
			s.createReady(name, name)
		}
	}},
}

// expectDeployment waits until the Foo's Deployment exists and asserts the fields that the operator owns.
func (s *scenarioRun) expectDeployment(f *v1alpha1.Foo) {
	deployment := s.expectDesired(f, 1)
	labels := gomega.And(
		gomega.HaveKeyWithValue("app.kubernetes.io/name", "foo"),
		gomega.HaveKeyWithValue("app.kubernetes.io/instance", f.Name),
		gomega.HaveKeyWithValue("app.kubernetes.io/managed-by", "foo-operator"),
	)
	s.Expect(deployment.Labels).To(labels)
	s.Expect(deployment.Spec.Template.Labels).To(labels)
	s.Expect(deployment.OwnerReferences).To(gomega.ConsistOf(metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Foo", Name: f.Name, UID: f.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}))
	s.Expect(deployment.ManagedFields[0].Manager).To(gomega.Equal(foo.FieldOwner))
	s.Expect(deployment.ManagedFields[0].Operation).To(gomega.Equal(metav1.ManagedFieldsOperationApply))
	pod := deployment.Spec.Template.Spec
	s.Expect(pod.SecurityContext.RunAsNonRoot).To(gomega.HaveValue(gomega.BeTrue()))
	s.Expect(pod.Containers).To(gomega.HaveLen(1))
	s.Expect(pod.Containers[0].Name).To(gomega.Equal("foo"))
	s.Expect(pod.Containers[0].Image).NotTo(gomega.BeEmpty())
	s.Expect(pod.Containers[0].SecurityContext.AllowPrivilegeEscalation).To(gomega.HaveValue(gomega.BeFalse()))
}

// alwaysGone asserts that no Deployment of the name is created again. If the garbage collector deletes it before the operator
// gets the deletion of the Foo, the operator creates it once more, and the garbage collector deletes that too.
func (s *scenarioRun) alwaysGone(deployment *appsv1.Deployment) {
	live := &appsv1.Deployment{}
	gone := func(g gomega.Gomega) {
		err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(deployment), live)
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v", err)
	}
	s.soon(gone)
	s.always(gone)
}

// settled waits until an object was not written for SteadyState, and returns its resourceVersion.
func (s *scenarioRun) settled(object client.Object) string {
	version := ""
	s.Eventually(s.ctx, func(g gomega.Gomega) bool {
		before := version
		version = s.versionOf(g, object)
		return version == before
	}).WithTimeout(s.Soon).WithPolling(s.SteadyState / 10).MustPassRepeatedly(10).Should(gomega.BeTrue())
	return version
}

func (s *scenarioRun) versionOf(g gomega.Gomega, object client.Object) string {
	s.get(g, object)
	return object.GetResourceVersion()
}

// version returns an object's resourceVersion as a number: of two objects of a kind, the one that was written later has the
// higher one.
func (s *scenarioRun) version(object client.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return version
}
