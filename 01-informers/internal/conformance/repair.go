package conformance

import (
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// repairScenarios are about drift: what other writers do to a Foo's Deployment and to its status.
var repairScenarios = []Scenario{
	{"corrects what another writer changes, and keeps what it adds", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		deployment := s.deployment("web-server")
		image := deployment.Spec.Template.Spec.Containers[0].Image
		update(s, deployment, func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(4))
			d.Spec.Template.Spec.Containers[0].Image = "example.com/another"
			d.Labels["app.kubernetes.io/managed-by"] = "another"
			// The operator does not own these fields.
			d.Labels["team"] = "blue"
			d.Annotations = map[string]string{"example.com/note": "added"}
			d.Spec.Template.Annotations = map[string]string{"example.com/restarted": "once"}
			d.Spec.RevisionHistoryLimit = new(int32(3))
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ADDED", Value: "yes"}}
		})
		s.soon(func(g gomega.Gomega) {
			d := s.find(g, "web-server")
			g.Expect(d.Spec.Replicas).To(gomega.HaveValue(gomega.BeEquivalentTo(1)))
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(image))
			g.Expect(d.Labels).To(gomega.HaveKeyWithValue("app.kubernetes.io/managed-by", "foo-operator"))
		})
		s.expectAvailable(f, 1)
		s.always(func(g gomega.Gomega) {
			d := s.find(g, "web-server")
			g.Expect(d.Labels).To(gomega.HaveKeyWithValue("team", "blue"))
			g.Expect(d.Annotations).To(gomega.HaveKeyWithValue("example.com/note", "added"))
			g.Expect(d.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("example.com/restarted", "once"))
			g.Expect(d.Spec.RevisionHistoryLimit).To(gomega.HaveValue(gomega.BeEquivalentTo(3)))
			g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(gomega.HaveLen(1))
		})
	}},

	{"goes on applying the spec when another writer has put an entry twice into a list of the Deployment", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		update(s, s.deployment("web-server"), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TWICE", Value: "1"}, {Name: "TWICE", Value: "2"}}
		})
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		s.expectAvailable(f, 2)
		s.Expect(s.deployment("web-server").Spec.Template.Spec.Containers[0].Env).To(gomega.HaveLen(2))
	}},

	// A container is known by its name: the renamed one looks like an injected sidecar.
	{"adds its container again when another writer renames it, and keeps the renamed one", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		update(s, s.deployment("web-server"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "renamed" })
		s.soon(func(g gomega.Gomega) {
			d := s.find(g, "web-server")
			g.Expect(d.Spec.Template.Spec.Containers).To(gomega.ConsistOf(
				gomega.HaveField("Name", "renamed"), gomega.HaveField("Name", "foo")))
		})
		s.expectAvailable(f, 1)
	}},

	{"creates the Deployment again when it is deleted", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		old := s.deployment("web-server")
		s.delete(old)
		s.expectGone(old)
		s.expectAvailable(f, 1)
		s.expectEvents(f, available, available)
	}},

	{"reports a Deployment whose owner reference is removed, and does not adopt it", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		deployment := s.deployment("web-server")
		update(s, deployment, func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		s.soon(func(g gomega.Gomega) {
			s.get(g, f)
			s.get(g, deployment)
			g.Expect(f.Status.Conditions).To(gomega.ContainElement(gomega.And(
				gomega.HaveField("Type", "Ready"), gomega.HaveField("Reason", "NameConflict"))))
		})
		s.Expect(deployment.OwnerReferences).To(gomega.BeEmpty())
		s.delete(deployment)
		s.expectAvailable(f, 1)
	}},

	{"writes the status again when another writer removes it", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[],"availableReplicas":0,"observedGeneration":0}}`))
		s.Expect(s.Client.Status().Patch(s.ctx, f, patch)).To(gomega.Succeed())
		s.expectAvailable(f, 1)
	}},
}
