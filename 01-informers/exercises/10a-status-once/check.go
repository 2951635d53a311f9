// Package status is exercise 10a: write the status once, when it has changed.
package status

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	typed "example.com/workbook/01-informers/internal/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client versioned.Interface, foo *v1alpha1.Foo, deployment *appsv1.Deployment) error

// Check writes the status for Deployments that are made up.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("Ready is False during a rollout, and True after it", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.write(deployment(2, 1))
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, 1)
		// One of those that are available is an old one.
		f.write(deployment(1, 2))
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, 2)
		f.write(deployment(2, 2))
		f.expect(metav1.ConditionTrue, v1alpha1.ReasonAvailable, 2)
	})
	if !ok {
		return
	}
	t.Behaviour("Ready is False until the Deployment's controller has seen the newest spec", func(b *check.B) {
		f := newFoo(b, work.Entry)
		behind := deployment(2, 2)
		behind.Generation++
		f.write(behind)
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, 2)
	})
	t.Behaviour("if nothing has changed, no request is sent", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.write(deployment(2, 2))
		before := len(f.wire.Requests())
		f.write(deployment(2, 2))
		if more := f.wire.Requests()[before:]; len(more) > 0 {
			b.Fatalf("nothing has changed, and a request was sent: %s", more[0])
		}
	})
	t.Behaviour("the Foo that it is given is not changed", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.write(deployment(2, 2))
		if f.changed {
			b.Fatalf("the Foo that WriteStatus was given was changed: whatever reads the cache sees a status that was perhaps never written")
		}
	})
	t.Behaviour("after a change of the spec, status and condition say which generation they speak of", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.write(deployment(2, 2))
		f.scale(3)
		f.write(deployment(2, 2))
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, 2)
		status := f.read().Status
		condition := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if status.ObservedGeneration != 2 || condition.ObservedGeneration != 2 {
			b.Fatalf("the Foo has generation 2, the status says %d and the condition %d", status.ObservedGeneration, condition.ObservedGeneration)
		}
	})
	t.Behaviour("the transition time changes only with the status of the condition", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.write(deployment(2, 0))
		long := metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
		f.change(func(status *v1alpha1.FooStatus) {
			apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).LastTransitionTime = long
		})
		f.write(deployment(2, 1))
		condition := apimeta.FindStatusCondition(f.read().Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || !condition.LastTransitionTime.Equal(&long) {
			b.Fatalf("Ready was False and is False, and its transition time has changed")
		}
	})
	t.Behaviour("a condition of another writer stays", func(b *check.B) {
		f := newFoo(b, work.Entry)
		f.change(audited)
		f.write(deployment(2, 2))
		f.expectAudited()
	})
	t.Behaviour("a write with an old Foo is rejected", func(b *check.B) {
		f := newFoo(b, work.Entry)
		old := f.read()
		f.change(audited)
		b.Event("WriteStatus with the Foo of before")
		if err := f.entry(b.Context(), f.client, old, deployment(2, 2)); err == nil {
			f.expectAudited()
			b.Fatalf("another writer has changed the Foo since it was read, and WriteStatus returned no error")
		}
		f.expectAudited()
	})
}

// foo is a Foo on the API server, with the reader's function.
type foo struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client versioned.Interface
	foos   typed.FooInterface
	// changed says whether WriteStatus has changed the Foo that it was given last.
	changed bool
}

const name = "a"

func newFoo(b *check.B, entry Entry) *foo {
	f := &foo{b: b, entry: entry, wire: kube.NewWire(b)}
	var err error
	if f.client, err = versioned.NewForConfig(f.wire.Config()); err != nil {
		b.Fatalf("making a client: %v", err)
	}
	own, err := versioned.NewForConfig(kube.Config(b))
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	f.foos = own.FooV1alpha1().Foos(kube.Namespace(b))
	replicas := int32(2)
	_, err = f.foos.Create(b.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a Foo: %v", err)
	}
	return f
}

// deployment is a Deployment that has been rolled out as far as that.
func deployment(updated, available int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: available},
	}
}

func (f *foo) read() *v1alpha1.Foo {
	object, err := f.foos.Get(f.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.b.Fatalf("reading the Foo: %v", err)
	}
	return object
}

func (f *foo) write(d *appsv1.Deployment) {
	given := f.read()
	before := given.DeepCopy()
	f.b.Event("WriteStatus: %d replicas are updated and %d are available", d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	if err := f.entry(f.b.Context(), f.client, given, d); err != nil {
		f.b.Fatalf("WriteStatus returned an error: %v", err)
	}
	f.changed = !apiequality.Semantic.DeepEqual(given, before)
}

func (f *foo) scale(replicas int32) {
	f.b.Event("the user sets spec.replicas to %d", replicas)
	object := f.read()
	object.Spec.Replicas = &replicas
	if _, err := f.foos.Update(f.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		f.b.Fatalf("changing the Foo: %v", err)
	}
}

// change is what another writer does to the status.
func (f *foo) change(status func(*v1alpha1.FooStatus)) {
	f.b.Event("another writer changes the status")
	object := f.read()
	status(&object.Status)
	if _, err := f.foos.UpdateStatus(f.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		f.b.Fatalf("changing the status of the Foo: %v", err)
	}
}

func audited(status *v1alpha1.FooStatus) {
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: "Audited", Status: metav1.ConditionTrue, Reason: "Audited", Message: "by another controller",
	})
}

func (f *foo) expectAudited() {
	if !apimeta.IsStatusConditionTrue(f.read().Status.Conditions, "Audited") {
		f.b.Fatalf("the condition Audited of another writer is lost")
	}
}

func (f *foo) expect(ready metav1.ConditionStatus, reason string, available int32) {
	status := f.read().Status
	condition := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	switch {
	case status.AvailableReplicas != available:
		f.b.Fatalf("availableReplicas is %d, and should be %d", status.AvailableReplicas, available)
	case condition == nil:
		f.b.Fatalf("there is no condition Ready")
	case condition.Status != ready || condition.Reason != reason:
		seen := ""
		if f.changed {
			seen = "; the Foo that WriteStatus was given was changed in place of it"
		}
		f.b.Fatalf("Ready is %s with the reason %s, and should be %s with %s%s", condition.Status, condition.Reason, ready, reason, seen)
	}
}
