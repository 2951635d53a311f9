package suite

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameConflict is the reason of the condition Ready where an object has the name of a dependent, and the Lolcow does not own it.
const nameConflict = "NameConflict"

// applies are the behaviours of step 15c.
func (s *suite) applies() {
	s.reconciles("in steady state Reconcile sends no request that writes, not even an apply that changes nothing", func(e *env) {
		e.serve()
		before := e.wire.count()
		for range 3 {
			_, err := e.reconcile("cow")
			e.must(err, "Reconcile returns an error")
		}
		for _, one := range e.wire.from(before) {
			if slices.Contains(writeVerbs, one.verb) {
				e.Fatalf("nothing has changed, and Reconcile sends: %s", one)
			}
		}
	})
	s.reconciles("what someone changes of what the spec decides is corrected", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.patch("the Deployment has 5 replicas", e.deployment("Moo"), types.MergePatchType, `{"spec":{"replicas":5}}`)
		e.settle("cow")
		e.expectReplicas(e.deployment("Moo"), 1)
		e.patch("the Service selects other pods", e.service(), types.MergePatchType, `{"spec":{"selector":{"example.com/other":"moo"}}}`)
		e.settle("cow")
		if e.service().Spec.Selector["example.com/other"] != "" {
			e.Errorf("the selector of the Service is still that of someone else")
		}
	})
	s.reconciles("what others add to the Deployment stays: a container, an annotation", (*env).additions)
	s.reconciles("a Deployment of the same name that the Lolcow does not own is left unchanged, and reported as NameConflict", func(e *env) {
		other := e.sameName()
		e.must(e.createOther(other), "creating the other Deployment")
		e.create("cow", fields{"greeting": "Moo"})
		e.attempt()
		e.expectUnchanged(other)
		if ready := e.expectReady(metav1.ConditionFalse, nameConflict); !strings.Contains(ready.Message, other.Name) {
			e.Errorf("the message of the condition does not name the object, %s", other.Name)
		}
		e.Event("kubectl delete: Deployment %s", other.Name)
		e.must(e.client.Delete(e.Context(), other), "deleting the other Deployment")
		e.expectRecovery(nameConflict)
	})
	s.reconciles("so is one that is created between the read and the write", (*env).race)
}

// additions does what a service mesh may do: its container comes first.
func (e *env) additions() {
	e.serve()
	e.patch("the Deployment has an annotation", e.deployment("Moo"), types.MergePatchType, `{"metadata":{"annotations":{"example.com/other":"moo"}}}`)
	e.patch("the Deployment has a sidecar", e.deployment("Moo"), types.JSONPatchType,
		`[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"sidecar","image":"sidecar:1"}}]`)
	e.settle("cow")
	now := e.deployment("Moo")
	if now.Annotations["example.com/other"] != "moo" {
		e.Errorf("the annotation of another controller is lost")
	}
	sidecar := func(c corev1.Container) bool { return c.Name == "sidecar" && c.Image == "sidecar:1" }
	if !slices.ContainsFunc(now.Spec.Template.Spec.Containers, sidecar) {
		e.Errorf("the container sidecar, of another controller, is lost or changed")
	}
}

// patch changes a dependent as another writer does.
func (e *env) patch(what string, object client.Object, form types.PatchType, patch string) {
	e.Event("another writer: %s", what)
	e.must(e.client.Patch(e.Context(), object, client.RawPatch(form, []byte(patch)), client.FieldOwner("another-writer")), "patching a dependent")
}

// sameName has the operator make a Deployment, deletes all of it, and returns another Deployment of that name and with that
// selector, which is not there yet.
func (e *env) sameName() *deployment {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	made := e.deployment("Moo")
	e.Event("kubectl delete: Lolcow cow, with its dependents")
	for _, one := range []client.Object{e.lolcow("cow"), made, e.service()} {
		e.must(e.client.Delete(e.Context(), one), "deleting a Lolcow and its dependents")
	}
	e.settle("cow")
	other := &deployment{ObjectMeta: metav1.ObjectMeta{Name: made.Name, Namespace: e.namespace}}
	other.Spec.Replicas = new(int32(2))
	other.Spec.Selector = made.Spec.Selector
	other.Spec.Template.Labels = made.Spec.Selector.MatchLabels
	other.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "other"}}
	return other
}

// createOther creates a Deployment that no Lolcow owns.
func (e *env) createOther(other *deployment) error {
	e.Event("kubectl create: Deployment %s, of a user", other.Name)
	return e.client.Create(e.Context(), other)
}

// race has a Deployment of the name created when the operator has read that there is none.
func (e *env) race() {
	other := e.sameName()
	e.create("cow", fields{"greeting": "Moo"})
	var created error
	e.wire.interfere(func(r request) {
		if r.resource == "deployments" && slices.Contains(writeVerbs, r.verb) && other.UID == "" {
			created = e.createOther(other)
		}
	})
	e.attempt()
	e.must(created, "creating the other Deployment")
	e.expectUnchanged(other)
	e.expectReady(metav1.ConditionFalse, nameConflict)
}

// expectUnchanged asserts that a Deployment is as it was created.
func (e *env) expectUnchanged(other *deployment) {
	e.Helper()
	var now deployment
	if err := e.client.Get(e.Context(), client.ObjectKeyFromObject(other), &now); err != nil || now.UID != other.UID {
		e.Fatalf("the Deployment %s, which the Lolcow does not own, was deleted", other.Name)
	}
	if now.ResourceVersion != other.ResourceVersion {
		e.Fatalf("the Deployment %s, which the Lolcow does not own, was changed", other.Name)
	}
}
