package conformance

import (
	"fmt"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// conflictScenarios are about names that are taken.
var conflictScenarios = []scenario{
	{"reports a foreign Deployment of the name, leaves it as it is, and heals when it goes", func(s *story) {
		s.foreignDeployment("web-server", nil)
	}},

	{"leaves a foreign Deployment alone that bears the labels of its own", func(s *story) {
		s.foreignDeployment("web-server", func(d *appsv1.Deployment) {
			d.Labels = map[string]string{
				"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": "web", "app.kubernetes.io/managed-by": "foo-operator",
			}
		})
	}},

	{"leaves a foreign Deployment alone that somebody else controls", func(s *story) {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "owner"}}
		s.Expect(s.Client.Create(s.ctx, owner)).To(gomega.Succeed())
		s.foreignDeployment("web-server", func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true),
			}}
		})
	}},

	{"keeps the old Deployment while the new deploymentName is taken", func(s *story) {
		f := s.createReady("web", "web-old")
		foreign := s.createForeign("web-new", nil)
		old, foreignVersion := s.deployment("web-old"), s.settled(foreign)
		oldVersion := s.settled(old)

		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		s.always(func(g gomega.Gomega) {
			g.Expect(s.versionOf(g, old)).To(gomega.Equal(oldVersion))
			g.Expect(s.versionOf(g, foreign)).To(gomega.Equal(foreignVersion))
		})

		s.delete(foreign)
		s.expectWanted(f, 1)
		s.expectGone(old)
		s.expectAvailable(f, 1)
		s.expectEvents(f, available, nameConflict, available)
	}},

	{"goes back to the old Deployment when a taken deploymentName is taken back", func(s *story) {
		f := s.createReady("web", "web-old")
		uid := s.deployment("web-old").UID
		s.createForeign("web-new", nil)
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-old" })
		s.expectAvailable(f, 1)
		s.Expect(s.deployment("web-old").UID).To(gomega.Equal(uid))
	}},

	{"gives a deploymentName to the first of two Foos, and to the second when the first is deleted", func(s *story) {
		first, second := s.twoFoos()
		s.deleteWithChildren(first)
		s.expectAvailable(second, 1)
		s.expectEvents(second, nameConflict, available)
	}},

	{"gives a deploymentName to the second of two Foos when the first takes another", func(s *story) {
		first, second := s.twoFoos()
		s.change(first, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "other" })
		s.expectAvailable(first, 1)
		s.expectAvailable(second, 1)
		s.expectEvents(first, available, available)
		s.expectEvents(second, nameConflict, available)
	}},

	{"gives a deploymentName to one of two Foos that are created at once, and calls it a conflict for the other", func(s *story) {
		for i := range 5 {
			name := fmt.Sprintf("web-%d", i)
			foos := []*v1alpha1.Foo{s.create(name+"-a", name), s.create(name+"-b", name)}
			owner := &appsv1.Deployment{}
			s.soon(func(g gomega.Gomega) {
				g.Expect(s.Client.Get(s.ctx, s.key(name), owner)).To(gomega.Succeed())
			})
			if metav1.IsControlledBy(owner, foos[1]) {
				foos[0], foos[1] = foos[1], foos[0]
			}
			s.expect(foos[1], metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			s.expectAvailable(foos[0], 1)
			s.soon(func(g gomega.Gomega) { g.Expect(s.events(g, foos[0])).To(gomega.Equal([]string{available})) })
			s.soon(func(g gomega.Gomega) { g.Expect(s.events(g, foos[1])).To(gomega.Equal([]string{nameConflict})) })
			s.Expect(s.deployment(name).UID).To(gomega.Equal(owner.UID))
		}
	}},
}

// foreignDeployment lives through a conflict with a Deployment that is not the Foo's.
func (s *story) foreignDeployment(name string, mutate func(*appsv1.Deployment)) {
	foreign := s.createForeign(name, mutate)
	version := s.settled(foreign)
	f := s.create("web", name)
	ready := s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	s.Expect(ready.Message).To(gomega.ContainSubstring("Deployment " + name + " exists and does not belong to this Foo"))
	s.Expect(f.Status.AvailableReplicas).To(gomega.BeZero())
	s.expectEvents(f, nameConflict)
	fooVersion := f.ResourceVersion
	s.always(func(g gomega.Gomega) {
		g.Expect(s.versionOf(g, foreign)).To(gomega.Equal(version))
		g.Expect(s.versionOf(g, f)).To(gomega.Equal(fooVersion), "a conflict that lasts is not written again")
	})

	s.delete(foreign)
	s.expectAvailable(f, 1)
	s.expectEvents(f, nameConflict, available)
}

// createForeign creates a Deployment that has nothing to do with any Foo.
func (s *story) createForeign(name string, mutate func(*appsv1.Deployment)) *appsv1.Deployment {
	foreign := s.foreign(name, mutate)
	s.Expect(s.Client.Create(s.ctx, foreign)).To(gomega.Succeed())
	return foreign
}

// foreign returns a Deployment without pods that is not created yet.
func (s *story) foreign(name string, mutate func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "foreign"}
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: "example.com/none"}}},
			},
		},
	}
	if mutate != nil {
		mutate(foreign)
	}
	return foreign
}

// twoFoos returns two Foos of one deploymentName. The first has the Deployment.
func (s *story) twoFoos() (first, second *v1alpha1.Foo) {
	first = s.createReady("first", "web-server")
	second = s.create("second", "web-server")
	s.expect(second, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	s.Expect(metav1.IsControlledBy(s.deployment("web-server"), first)).To(gomega.BeTrue())
	return first, second
}
