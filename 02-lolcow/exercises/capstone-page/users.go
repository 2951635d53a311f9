package page

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
)

// kind is one of those that a Page has an object of.
type kind struct {
	name string
	// empty returns an object without a name.
	empty func() client.Object
}

var kinds = []kind{
	{"ConfigMap", func() client.Object { return &corev1.ConfigMap{} }},
	{"Deployment", func() client.Object { return &appsv1.Deployment{} }},
	{"Service", func() client.Object { return &corev1.Service{} }},
}

func hostname(name string) string { return name + ".example.com" }

// page creates a Page, as a user.
func (c *cluster) page(name string, change func(*pages.Page)) {
	page := &pages.Page{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		Spec:       pages.PageSpec{Markdown: "# " + name, Hostname: hostname(name)},
	}
	if change != nil {
		change(page)
	}
	c.b.Event("a user creates the Page %s", name)
	c.must("creating a Page", c.client.Create(c.b.Context(), page))
}

// change changes a Page, as a user.
func (c *cluster) change(name, what string, change func(*pages.Page)) {
	c.b.Event("a user changes the Page %s: %s", name, what)
	c.must("changing a Page", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		page := c.getPage(name)
		if page == nil {
			c.b.Fatalf("the Page %s is not there any more", name)
		}
		change(page)
		return c.client.Update(c.b.Context(), page)
	}))
}

// touch changes what the operator has no interest in, three times.
func (c *cluster) touch(name string) {
	for n := range 3 {
		c.change(name, "a label", func(page *pages.Page) {
			page.Labels = map[string]string{"example.com/team": fmt.Sprintf("team-%d", n)}
		})
	}
}

// remove deletes the Page a, as a user.
func (c *cluster) remove() {
	c.b.Event("a user deletes the Page a")
	c.must("deleting a Page", c.client.Delete(c.b.Context(), c.getPage("a")))
}

// getPage returns a Page, or nil.
func (c *cluster) getPage(name string) *pages.Page {
	page := &pages.Page{}
	if !c.get(name, page) {
		return nil
	}
	return page
}

// get reads an object, and says whether it is there.
func (c *cluster) get(name string, object client.Object) bool {
	err := c.client.Get(c.b.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false
	}
	c.must("reading an object", err)
	return true
}

// object returns one of a Page's objects.
func (c *cluster) object(k kind, name string) client.Object {
	object := k.empty()
	if !c.get(name, object) {
		c.b.Fatalf("there is no %s %s", k.name, name)
	}
	return object
}

func (c *cluster) deployment(name string) *appsv1.Deployment {
	return c.object(kinds[1], name).(*appsv1.Deployment)
}

// patch changes an object, as a user.
func (c *cluster) patch(object client.Object, what string, change func()) {
	c.b.Event("a user changes the object %s: %s", object.GetName(), what)
	before := object.DeepCopyObject().(client.Object)
	change()
	c.must("changing an object", c.client.Patch(c.b.Context(), object, client.MergeFrom(before)))
}

// delete deletes an object, as a user.
func (c *cluster) delete(k kind, name string) {
	c.b.Event("a user deletes the %s %s", k.name, name)
	c.must("deleting an object", c.client.Delete(c.b.Context(), c.object(k, name), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// stray creates an object of a user, under a name that a Page has too.
func (c *cluster) stray(k kind, name string, owners ...metav1.OwnerReference) client.Object {
	c.b.Event("a user creates the %s %s, which has %d owners", k.name, name, len(owners))
	meta := metav1.ObjectMeta{Name: name, Namespace: c.namespace, OwnerReferences: owners}
	labels := map[string]string{"app": "stray"}
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"private": "yes"}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "stray", Image: "stray"}}},
			},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81}}}},
	}
	object := objects[slices.IndexFunc(kinds, func(one kind) bool { return one.name == k.name })]
	c.must("creating an object", c.client.Create(c.b.Context(), object))
	return object
}

// untouched checks that an object of a user is as it was.
func (c *cluster) untouched(k kind, before client.Object) {
	live := k.empty()
	switch {
	case !c.get(before.GetName(), live) || live.GetUID() != before.GetUID() || live.GetDeletionTimestamp() != nil:
		c.b.Fatalf("a %s of that name, which the Page does not control, was deleted", k.name)
	case live.GetGeneration() != before.GetGeneration() || len(live.GetManagedFields()) != len(before.GetManagedFields()) ||
		len(live.GetOwnerReferences()) != len(before.GetOwnerReferences()) || !maps.Equal(live.GetLabels(), before.GetLabels()):
		c.b.Fatalf("a %s of that name, which the Page does not control, was changed", k.name)
	}
}

// report says what is wrong with the condition, or returns an empty string.
func (c *cluster) report(name string, status metav1.ConditionStatus, reason string) string {
	page := c.getPage(name)
	if page == nil {
		return "the Page " + name + " is not there"
	}
	ready := apimeta.FindStatusCondition(page.Status.Conditions, pages.ConditionReady)
	switch {
	case ready == nil:
		return "the Page " + name + " has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("Ready of the Page %s is %s, %s, and should be %s, %s", name, ready.Status, ready.Reason, status, reason)
	case ready.ObservedGeneration != page.Generation:
		return fmt.Sprintf("Ready of the Page %s is %s, and is not about the generation that it has", name, ready.Status)
	}
	return ""
}

// notReady waits until a Page is not ready, for a reason.
func (c *cluster) notReady(name, reason string) {
	c.eventually(func() string { return c.report(name, metav1.ConditionFalse, reason) })
}

// ready waits until a Page is ready, and checks what it has.
func (c *cluster) ready(name string) {
	c.eventually(func() string { return c.report(name, metav1.ConditionTrue, pages.ReasonServing) })
	page := c.getPage(name)
	if text := c.unlike(page); text != "" {
		c.b.Fatalf("the Page %s is ready, and %s", name, text)
	}
	c.b.Event("the Page %s is ready", name)
}

// gone waits until the Page a is gone, with its record.
func (c *cluster) gone(hostname string) {
	c.eventually(func() string {
		if c.getPage("a") != nil {
			return "the Page was deleted, and is still there"
		}
		return ""
	})
	if _, found := c.dns.find(hostname); found {
		c.b.Fatalf("the Page is gone, and its DNS record is still there")
	}
	c.b.Event("the Page a is gone")
}
