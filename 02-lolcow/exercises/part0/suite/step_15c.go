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
	s.reconciles("in steady state Reconcile sends no request that writes a dependent, not even an apply that changes nothing", func(e *env) {
		e.serve()
		before := e.wire.count()
		for range 3 {
			_, err := e.reconcile("cow")
			e.must(err, "Reconcile returns an error")
		}
		for _, one := range e.wire.from(before) {
			// What changes nothing in the status was good enough for the steps before, and this one is about the dependents.
			forStatus := one.harmless && one.resource == "lolcows/status"
			if slices.Contains(writeVerbs, one.verb) && !forStatus {
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
		e.patch("the Deployment has another image", e.deployment("Moo"), types.JSONPatchType,
			`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"other:1"}]`)
		e.settle("cow")
		e.expectImage(e.deployment("Moo"))
		e.patch("the Service selects other pods", e.service(), types.MergePatchType, `{"spec":{"selector":{"example.com/other":"moo"}}}`)
		e.settle("cow")
		if e.service().Spec.Selector["example.com/other"] != "" {
			e.Errorf("the selector of the Service is still that of someone else")
		}
	})
	s.reconciles("what others add to the Deployment stays: a container, an annotation", (*env).additions)
	s.namesTaken()
}

// namesTaken has objects that the Lolcow does not own under the names of its dependents.
func (s *suite) namesTaken() {
	s.reconciles("a Deployment of the same name that the Lolcow does not own is left unchanged, and reported as NameConflict", func(e *env) {
		made, _ := e.makeAndDelete()
		e.expectNameConflict(otherDeployment(made))
	})
	s.reconciles("a Service of the same name that the Lolcow does not own is left unchanged, and reported as NameConflict", func(e *env) {
		_, made := e.makeAndDelete()
		e.expectNameConflict(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: made.Name, Namespace: e.namespace},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	})
	s.reconciles("so is a Deployment whose owner was an earlier Lolcow of the same name", func(e *env) {
		made, _ := e.makeAndDelete()
		other := otherDeployment(made)
		other.OwnerReferences = made.OwnerReferences
		e.expectNameConflict(other)
	})
	s.reconciles("so is a Deployment that is created between the read and the write", (*env).race)
	s.reconciles("so is a Service that is created between the read and the write", (*env).serviceRace)
	s.reconciles("so is a Deployment that takes the place of the Lolcow's own between the read and the write", (*env).replacement)
	if s.failed {
		return
	}
	s.reconciles("when such a Deployment is deleted, the Lolcow gets its own, although nothing has changed in the Lolcow", func(e *env) {
		made, _ := e.makeAndDelete()
		other := otherDeployment(made)
		e.must(e.createOther(other), "creating the other Deployment")
		e.impersonate(e.rules())
		e.start()
		e.create("cow", fields{"greeting": "Moo"})
		e.await("Ready has the reason "+nameConflict, func() bool { return e.condition("cow", "Ready").Reason == nameConflict })
		e.remove("Deployment", other)
		e.await("a Deployment of the Lolcow in place of the one that was deleted", func() bool {
			all := e.deployments()
			return len(all) == 1 && all[0].UID != other.UID
		})
	})
}

// additions does what a service mesh may do: its container comes first.
func (e *env) additions() {
	e.serve()
	e.patch("the Deployment has an annotation", e.deployment("Moo"), types.MergePatchType, `{"metadata":{"annotations":{"example.com/other":"moo"}}}`)
	e.patch("the Deployment has a sidecar", e.deployment("Moo"), types.JSONPatchType,
		`[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"sidecar","image":"sidecar:1"}}]`)
	e.settle("cow")
	e.expectAdditions(e.deployment("Moo"))
	e.change("cow", fields{"greeting": "Baa"})
	e.settle("cow")
	e.expectAdditions(e.deployment("Baa"))
}

func (e *env) expectAdditions(now *deployment) {
	e.Helper()
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

// makeAndDelete has the operator make a Deployment and a Service, deletes them and their Lolcow, and returns them.
func (e *env) makeAndDelete() (*deployment, *corev1.Service) {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	deployment, service := e.deployment("Moo"), e.service()
	e.Event("kubectl delete: Lolcow cow, with its dependents")
	for _, one := range []client.Object{e.lolcow("cow"), deployment, service} {
		e.must(e.client.Delete(e.Context(), one), "deleting a Lolcow and its dependents")
	}
	e.settle("cow")
	return deployment, service
}

// otherDeployment is another one, of the same name and with the same selector, which is not there yet.
func otherDeployment(made *deployment) *deployment {
	other := &deployment{ObjectMeta: metav1.ObjectMeta{Name: made.Name, Namespace: made.Namespace}}
	other.Spec.Replicas = new(int32(2))
	other.Spec.Selector = made.Spec.Selector
	other.Spec.Template.Labels = made.Spec.Template.Labels
	other.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "other"}}
	return other
}

// createOther creates an object that the Lolcow does not own.
func (e *env) createOther(other client.Object) error {
	e.Event("kubectl create: %s %s, of a user", e.kind(other), other.GetName())
	return e.client.Create(e.Context(), other)
}

func (e *env) kind(object client.Object) string {
	gvk, err := e.client.GroupVersionKindFor(object)
	e.must(err, "reading the kind of an object")
	return gvk.Kind
}

// expectNameConflict creates the Lolcow cow where another object has the name of a dependent, and then deletes that.
func (e *env) expectNameConflict(other client.Object) {
	e.must(e.createOther(other), "creating the other "+e.kind(other))
	e.create("cow", fields{"greeting": "Moo"})
	e.attempt()
	e.expectUnchanged(other)
	if ready := e.expectReady(metav1.ConditionFalse, nameConflict); !strings.Contains(ready.Message, other.GetName()) {
		e.Errorf("the message of the condition does not name the object, %s", other.GetName())
	}
	e.Event("kubectl delete: %s %s", e.kind(other), other.GetName())
	e.must(e.client.Delete(e.Context(), other), "deleting the other "+e.kind(other))
	e.expectRecovery(nameConflict)
}

// race has a Deployment of the name created when the operator has read that there is none. It has no other value in a field of the
// operator's, so that an apply without force meets no conflict.
func (e *env) race() {
	made, _ := e.makeAndDelete()
	other := otherDeployment(made)
	other.Spec.Replicas = made.Spec.Replicas
	e.create("cow", fields{"greeting": "Moo"})
	e.raceWith(other, nil)
}

// serviceRace does so with a Service.
func (e *env) serviceRace() {
	_, made := e.makeAndDelete()
	e.create("cow", fields{"greeting": "Moo"})
	e.raceWith(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name, Namespace: e.namespace},
		Spec:       corev1.ServiceSpec{Type: made.Spec.Type, Ports: []corev1.ServicePort{{Name: "other", Port: 9999}}},
	}, nil)
}

// replacement has the Lolcow's Deployment replaced by another one when the operator has read it.
func (e *env) replacement() {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	made := e.deployment("Moo")
	e.change("cow", fields{"greeting": "Baa"})
	e.raceWith(otherDeployment(made), made)
}

// raceWith creates an object before the operator writes one of this kind, in the place of another if that is given.
func (e *env) raceWith(other, instead client.Object) {
	var created error
	resource := strings.ToLower(e.kind(other)) + "s"
	e.wire.interfere(func(r request) {
		if r.resource != resource || !slices.Contains(writeVerbs, r.verb) || other.GetUID() != "" || created != nil {
			return
		}
		if instead != nil {
			e.Event("kubectl delete: %s %s", e.kind(instead), instead.GetName())
			created = e.client.Delete(e.Context(), instead)
		}
		if created == nil {
			created = e.createOther(other)
		}
	})
	e.attempt()
	e.must(created, "creating the other "+e.kind(other))
	e.expectUnchanged(other)
	e.expectReady(metav1.ConditionFalse, nameConflict)
}

// expectUnchanged asserts that an object is as it was created.
func (e *env) expectUnchanged(other client.Object) {
	e.Helper()
	now := other.DeepCopyObject().(client.Object)
	if err := e.client.Get(e.Context(), client.ObjectKeyFromObject(other), now); err != nil || now.GetUID() != other.GetUID() {
		e.Fatalf("the %s %s, which the Lolcow does not own, was deleted", e.kind(other), other.GetName())
	}
	if now.GetResourceVersion() != other.GetResourceVersion() {
		e.Fatalf("the %s %s, which the Lolcow does not own, was changed", e.kind(other), other.GetName())
	}
}
