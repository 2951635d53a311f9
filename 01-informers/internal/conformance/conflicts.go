package conformance

import (
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// conflictScenarios are about objects of the same name.
var conflictScenarios = []Scenario{
	{"reports a Deployment of the name that it does not own, leaves it unchanged, and recovers when it is deleted", func(s *scenarioRun) {
		s.conflictWith("web-server", nil)
	}},

	{"leaves a Deployment unchanged that it does not own, and that has the labels of its own", func(s *scenarioRun) {
		s.conflictWith("web-server", func(d *appsv1.Deployment) {
			d.Labels = map[string]string{
				"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": "web", "app.kubernetes.io/managed-by": "foo-operator",
			}
		})
	}},

	{"leaves a Deployment unchanged that another object is the controller of", func(s *scenarioRun) {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "owner"}}
		s.Expect(s.Client.Create(s.ctx, owner)).To(gomega.Succeed())
		s.conflictWith("web-server", func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true),
			}}
		})
	}},

	{"keeps the old Deployment while there is another one of the new deploymentName", func(s *scenarioRun) {
		f := s.createReady("web", "web-old")
		other := s.createNotOwned("web-new", nil)
		old, otherVersion := s.deployment("web-old"), s.settled(other)
		oldVersion := s.settled(old)

		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		s.always(func(g gomega.Gomega) {
			g.Expect(s.versionOf(g, old)).To(gomega.Equal(oldVersion))
			g.Expect(s.versionOf(g, other)).To(gomega.Equal(otherVersion))
		})

		s.delete(other)
		s.expectDesired(f, 1)
		s.expectGone(old)
		s.expectAvailable(f, 1)
		s.expectEvents(f, available, nameConflict, available)
	}},

	{"keeps the old Deployment when a deploymentName with a conflict is changed back", func(s *scenarioRun) {
		f := s.createReady("web", "web-old")
		uid := s.deployment("web-old").UID
		s.createNotOwned("web-new", nil)
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-old" })
		s.expectAvailable(f, 1)
		s.Expect(s.deployment("web-old").UID).To(gomega.Equal(uid))
	}},

	{"gives a deploymentName to the first of two Foos, and to the second when the first is deleted", func(s *scenarioRun) {
		first, second := s.twoFoos()
		s.deleteWithDependent(first)
		s.expectAvailable(second, 1)
		s.expectEvents(second, nameConflict, available)
	}},

	{"gives a deploymentName to the second of two Foos when the first has another one", func(s *scenarioRun) {
		first, second := s.twoFoos()
		s.change(first, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "other" })
		s.expectAvailable(first, 1)
		s.expectAvailable(second, 1)
		s.expectEvents(first, available, available)
		s.expectEvents(second, nameConflict, available)
	}},
}

// conflictWith creates a Foo whose deploymentName is that of a Deployment that it does not own, and then deletes that.
func (s *scenarioRun) conflictWith(name string, mutate func(*appsv1.Deployment)) {
	other := s.createNotOwned(name, mutate)
	version := s.settled(other)
	f := s.create("web", name)
	ready := s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	s.Expect(ready.Message).To(gomega.ContainSubstring("Deployment " + name + " already exists and has a different owner, or none"))
	s.Expect(f.Status.AvailableReplicas).To(gomega.BeZero())
	s.expectEvents(f, nameConflict)
	fooVersion := f.ResourceVersion
	s.always(func(g gomega.Gomega) {
		g.Expect(s.versionOf(g, other)).To(gomega.Equal(version))
		g.Expect(s.versionOf(g, f)).To(gomega.Equal(fooVersion), "a conflict that lasts is not written again")
	})

	s.delete(other)
	s.expectAvailable(f, 1)
	s.expectEvents(f, nameConflict, available)
}

// createNotOwned creates a Deployment that no Foo owns.
func (s *scenarioRun) createNotOwned(name string, mutate func(*appsv1.Deployment)) *appsv1.Deployment {
	other := s.notOwned(name, mutate)
	s.Expect(s.Client.Create(s.ctx, other)).To(gomega.Succeed())
	return other
}

// notOwned returns a Deployment without pods that is not created yet.
func (s *scenarioRun) notOwned(name string, mutate func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "other"}
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "example.com/none"}}},
			},
		},
	}
	if mutate != nil {
		mutate(other)
	}
	return other
}

// twoFoos returns two Foos of one deploymentName. The first has the Deployment.
func (s *scenarioRun) twoFoos() (first, second *v1alpha1.Foo) {
	first = s.createReady("first", "web-server")
	second = s.create("second", "web-server")
	s.expect(second, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	s.Expect(metav1.IsControlledBy(s.deployment("web-server"), first)).To(gomega.BeTrue())
	return first, second
}
