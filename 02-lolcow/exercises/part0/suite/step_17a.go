package suite

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owns are the behaviours of step 17a. Those that need a manager wait for what the others explain, so they come last.
func (s *suite) owns() {
	s.reconciles("the Deployment and the Service have an owner reference to their Lolcow, as their controller", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.expectController("Deployment", e.deployment("Moo"))
		e.expectController("Service", e.service())
	})
	s.reconciles("in steady state Reconcile does not ask to be called again", func(e *env) {
		e.serve()
		result, err := e.reconcile("cow")
		e.must(err, "Reconcile returns an error")
		if comesAgain(result, nil) {
			e.Errorf("nothing is left to do, and Reconcile asks to be called again %s: what changes until then stays as it is", pause(result))
		}
	})
	if s.failed {
		return
	}
	if s.last == "17a" {
		// From the next step on, what the Lolcow does not own is left alone.
		s.reconciles("dependents that were made before there were owner references get them", (*env).adoption)
	}
	if s.failed {
		return
	}
	s.reconciles("a Deployment that is deleted comes back, although nothing has changed in the Lolcow", func(e *env) {
		e.startQuiet()
		before := e.deployment("Moo")
		e.remove("Deployment", before)
		e.await("another Deployment in place of the one that was deleted", func() bool {
			all := e.deployments()
			return len(all) == 2 && all[0].UID != before.UID && all[1].UID != before.UID
		})
	})
	if s.failed {
		return
	}
	s.reconciles("a Service that is deleted comes back, although nothing has changed in the Lolcow", func(e *env) {
		e.startQuiet()
		before := e.serviceAt(firstPort)
		e.remove("Service", before)
		e.await("another Service in place of the one that was deleted", func() bool {
			now := e.serviceAt(firstPort)
			return now != nil && now.UID != before.UID
		})
	})
	if s.failed {
		return
	}
	s.reconciles("Ready follows the Deployment, although nothing has changed in the Lolcow", func(e *env) {
		e.startQuiet()
		e.rollOut(e.deployment("Moo"))
		e.await("Ready is True with the reason Serving", func() bool { return e.condition("cow", "Ready").Reason == serving })
	})
	if s.failed {
		return
	}
	s.reconciles("a Service whose selector someone removes gets it back, although nothing has changed in the Lolcow", func(e *env) {
		e.startQuiet()
		// What someone removes has no owner in managedFields: an apply need not force anything before 15c.
		e.patch("the Service has no selector", e.serviceAt(firstPort), types.JSONPatchType, `[{"op":"remove","path":"/spec/selector"}]`)
		e.await("a Service with a selector again", func() bool {
			service := e.serviceAt(firstPort)
			return service != nil && len(service.Spec.Selector) > 0
		})
	})
}

// expectController asserts what the garbage collector and Owns read: who an object's owner is, and its controller.
func (e *env) expectController(kind string, object client.Object) {
	e.Helper()
	lolcow := e.lolcow("cow")
	for _, one := range object.GetOwnerReferences() {
		if one.UID != lolcow.GetUID() {
			continue
		}
		if one.APIVersion != lolcow.GetAPIVersion() || one.Kind != lolcow.GetKind() || one.Name != lolcow.GetName() {
			e.Fatalf("the owner reference of the %s has the uid of the Lolcow, and names %s %s", kind, one.Kind, one.Name)
		}
		if !metav1.IsControlledBy(object, lolcow) {
			e.Fatalf("the owner reference of the %s does not say that the Lolcow is its controller: Owns does not see it", kind)
		}
		return
	}
	e.Fatalf("the %s has no owner reference to its Lolcow: the garbage collector would leave it", kind)
}

// anotherOwner is one besides the Lolcow.
var anotherOwner = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "budget", UID: "5f0c2b1e-6f5b-4d44-9d0c-3c1f6a1a7e55"}

// adoption starts the operator, in its role, where the dependents are those of the step before.
func (e *env) adoption() {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	for kind, dependent := range map[string]client.Object{"Deployment": e.deployment("Moo"), "Service": e.service()} {
		e.Event("the %s has no owner reference but that of a ConfigMap", kind)
		before := dependent.DeepCopyObject().(client.Object)
		dependent.SetOwnerReferences([]metav1.OwnerReference{anotherOwner})
		e.must(e.client.Patch(e.Context(), dependent, client.MergeFrom(before)), "changing an owner reference")
	}
	e.impersonate(e.rules())
	e.start()
	e.await("an owner reference of the Deployment and of the Service that were there", func() bool {
		lolcow := e.lolcow("cow")
		return metav1.IsControlledBy(e.deployment("Moo"), lolcow) && metav1.IsControlledBy(e.service(), lolcow)
	})
	for kind, dependent := range map[string]client.Object{"Deployment": e.deployment("Moo"), "Service": e.service()} {
		if !slices.Contains(dependent.GetOwnerReferences(), anotherOwner) {
			e.Fatalf("the %s had an owner reference of a ConfigMap too, and has lost it: SetControllerReference leaves those of others", kind)
		}
	}
}

// startQuiet starts the operator as on a cluster, and returns when it has nothing left to do for the Lolcow cow.
func (e *env) startQuiet() {
	e.impersonate(e.rules())
	e.start()
	e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
	e.awaitReport("cow")
	// What the last write for cow has triggered was in the queue before calf.
	e.create("calf", fields{"greeting": "Baa"})
	e.awaitReport("calf")
}

// awaitReport waits until the status of a Lolcow speaks of its spec.
func (e *env) awaitReport(name string) {
	e.await("the condition Ready of the Lolcow "+name, func() bool {
		return e.condition(name, "Ready").ObservedGeneration == e.lolcow(name).GetGeneration()
	})
}

// serviceAt returns the Service with a node port, or nil.
func (e *env) serviceAt(port int32) *corev1.Service {
	for _, service := range e.services() {
		if slices.ContainsFunc(service.Spec.Ports, func(one corev1.ServicePort) bool { return one.NodePort == port }) {
			return &service
		}
	}
	return nil
}

// remove deletes a dependent, as a user may.
func (e *env) remove(kind string, object client.Object) {
	e.Event("kubectl delete: %s %s", kind, object.GetName())
	e.must(e.client.Delete(e.Context(), object), "deleting the "+kind)
}
