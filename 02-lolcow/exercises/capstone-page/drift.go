package page

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
)

// edit is what a user changes in an object of a Page. Each is made by itself: the write that corrects one may correct others, too.
type edit struct {
	kind   kind
	what   string
	change func(client.Object)
}

var edits = []edit{
	ofConfig("the Markdown", func(c *corev1.ConfigMap) { c.Data[pages.Key] = "# Hacked" }),
	ofConfig("another key", func(c *corev1.ConfigMap) { c.Data["more.md"] = "# More" }),
	ofConfig("binary data", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"more.png": {1}} }),
	ofPods("the image", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "hacked" }),
	ofPods("another container", func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more", Image: "hacked"})
	}),
	ofPods("nothing is mounted", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].VolumeMounts = nil }),
	ofPods("the ConfigMap that is mounted", func(p *corev1.PodTemplateSpec) { p.Spec.Volumes[0].ConfigMap.Name = "hacked" }),
	ofPods("the annotation of the Pods", func(p *corev1.PodTemplateSpec) { p.Annotations[pages.Annotation] = "hacked" }),
	ofService("the port", func(s *corev1.ServiceSpec) { s.Ports[0].Port = 8081 }),
	ofService("the port of the Pods", func(s *corev1.ServiceSpec) { s.Ports[0].TargetPort = intstr.FromInt32(1) }),
	ofService("the selector", func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"app": "hacked"} }),
}

func ofConfig(what string, change func(*corev1.ConfigMap)) edit {
	return edit{kinds[0], what, func(object client.Object) { change(object.(*corev1.ConfigMap)) }}
}

func ofPods(what string, change func(*corev1.PodTemplateSpec)) edit {
	return edit{kinds[1], what, func(object client.Object) { change(&object.(*appsv1.Deployment).Spec.Template) }}
}

func ofService(what string, change func(*corev1.ServiceSpec)) edit {
	return edit{kinds[2], what, func(object client.Object) { change(&object.(*corev1.Service).Spec) }}
}

// drift checks that what others do to a Page's objects is corrected, unless it is theirs.
func drift(t *check.T, work check.Work[Entry]) {
	t.Behaviour("what users change in its objects is corrected", func(b *check.B) {
		c := started(b, work)
		for _, one := range edits {
			object := c.object(one.kind, "a")
			c.patch(object, one.what, func() { one.change(object) })
			c.corrected("a")
		}
	})
	t.Behaviour("what users delete of its objects is created again", func(b *check.B) {
		c := started(b, work)
		for _, k := range kinds {
			c.delete(k, "a")
		}
		c.corrected("a")
		c.ready("a")
	})
	t.Behaviour("the number of Pods, labels and annotations of others stay", func(b *check.B) {
		c := started(b, work)
		deployment, service := c.deployment("a"), c.object(kinds[2], "a")
		c.patch(deployment, "three Pods", func() { deployment.Spec.Replicas = new(int32(3)) })
		c.patch(service, "an annotation", func() { service.SetAnnotations(map[string]string{"example.com/team": "web"}) })
		c.patch(deployment, "a label", func() { deployment.Labels = with(deployment.Labels, "example.com/team", "web") })
		c.change("a", "the Markdown", func(page *pages.Page) { page.Spec.Markdown = "# Another" })
		c.ready("a")
		c.operator.Restart()
		c.settle("b")
		deployment = c.deployment("a")
		switch {
		case *deployment.Spec.Replicas != 3:
			b.Fatalf("an autoscaler wants three Pods, and the Deployment has %d", *deployment.Spec.Replicas)
		case deployment.Labels["example.com/team"] != "web":
			b.Fatalf("a label of the Deployment that is not the operator's was removed")
		case c.object(kinds[2], "a").GetAnnotations()["example.com/team"] != "web":
			b.Fatalf("an annotation of the Service that is not the operator's was removed")
		}
	})
	t.Behaviour("a DNS record that another client has deleted is written again, at the latest when the Page changes", func(b *check.B) {
		c := started(b, work)
		b.Event("the records are deleted")
		c.dns.set(func(s *service) { s.records = map[string]pages.Record{otherID: s.records[otherID]} })
		c.change("a", "the Markdown", func(page *pages.Page) { page.Spec.Markdown = "# Another" })
		c.eventually(func() string {
			if _, found := c.dns.find(hostname("a")); !found {
				return "there is no DNS record of " + hostname("a")
			}
			return ""
		})
	})
}

func with(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// corrected waits until a Page has what its spec asks for.
func (c *cluster) corrected(name string) {
	c.eventually(func() string {
		if text := c.unlike(c.getPage(name)); text != "" {
			return "of the Page " + name + ": " + text
		}
		return ""
	})
}
