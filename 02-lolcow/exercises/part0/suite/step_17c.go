package suite

import (
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/shared/exercise/kube"
)

// Reasons of the condition Ready, and of an Event, for the record of a Lolcow.
const (
	dnsFailed  = "DNSFailed"
	recordLeft = "RecordLeft"
)

// Hostnames of Lolcows.
const (
	firstHost  = "cow.example.com"
	secondHost = "calf.example.com"
)

// otherFinalizer is that of another controller.
const otherFinalizer = "example.com/other"

// finalizer are the behaviours of step 17c.
func (s *suite) finalizer() {
	s.reconciles("spec.hostname is stored, with up to 253 characters", (*env).hostnameField)
	if s.failed {
		return
	}
	s.reconciles("the hostname of the spec is in a record of the DNS service, and another one takes its place", func(e *env) {
		e.createWithRecord()
		e.change("cow", fields{"hostname": secondHost})
		e.settle("cow")
		e.expectRecords("after another hostname", secondHost)
	})
	s.reconciles("when hostname is removed while the operator is down, so is the record", func(e *env) {
		e.createWithRecord()
		e.change("cow", fields{"hostname": nil})
		e.Event("the operator restarts")
		e.restart()
		e.settle("cow")
		e.expectRecords("without a hostname")
	})
	s.reconciles("each Lolcow has a record of its own: also of the same name in another namespace, and with a name of 63 characters", (*env).ownRecords)
	s.reconciles("the record is deleted with its Lolcow, and the finalizer of another controller stays", (*env).otherFinalizers)
	s.reconciles("a finalizer that another controller adds between the read and the write stays", (*env).lateFinalizer)
	s.reconciles("in each mode of deletion the record is deleted, and no dependent is created again", (*env).modesOfDeletion)
	s.reconciles("a Lolcow that was deleted before the operator has read it gets no record", (*env).deletedBefore)
	s.reconciles("a record that is not there any more is no obstacle to the deletion", func(e *env) {
		e.createWithRecord()
		e.dns.drop()
		e.delete("cow", metav1.DeletePropagationBackground)
		e.settle("cow")
		e.expectGone()
	})
	s.outage()
	if s.failed {
		return
	}
	s.reconciles("after a request that fails the record is there, and later deleted with its Lolcow: for each request", func(e *env) { e.eachRequest(lost) })
	s.reconciles("a crash leaves no record and no Lolcow that is not deleted: after each request", func(e *env) { e.eachRequest(crashed) })
}

// hostnameField creates Lolcows at the bound of the field, and beyond it.
func (e *env) hostnameField() {
	longest := strings.Repeat("m", 63) + strings.Repeat("."+strings.Repeat("m", 62), 3) + ".m"
	e.create("cow", fields{"hostname": longest[:253]})
	if got, _, _ := unstructured.NestedString(e.lolcow("cow").Object, "spec", "hostname"); got != longest[:253] {
		e.Fatalf("spec.hostname is not stored: the CRD does not have the field")
	}
	err := e.client.Create(e.Context(), e.newLolcow("calf", fields{"hostname": longest[:253] + "m"}))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.hostname") {
		e.Fatalf("a hostname of 254 characters, which DNS does not have, is not rejected")
	}
}

// createWithRecord creates the Lolcow cow with the first hostname, and expects its record.
func (e *env) createWithRecord() {
	e.create("cow", fields{"greeting": "Moo", "hostname": firstHost})
	e.settle("cow")
	e.expectRecords("after the creation", firstHost)
}

// expectRecords asserts the hostnames of all records.
func (e *env) expectRecords(when string, hostnames ...string) {
	e.Helper()
	if got := e.dns.hostnames(); !slices.Equal(got, hostnames) {
		e.Fatalf("%s, the DNS service has records of %v; expected %v", when, got, hostnames)
	}
}

// delete deletes a Lolcow, as a user does.
func (e *env) delete(name string, mode metav1.DeletionPropagation) {
	e.Event("kubectl delete --cascade=%s: Lolcow %s", strings.ToLower(string(mode)), name)
	e.must(e.client.Delete(e.Context(), e.lolcow(name), client.PropagationPolicy(mode)), "deleting the Lolcow "+name)
}

// finalizers are those of a Lolcow. It is nil if there is no such Lolcow.
func (e *env) finalizers(name string) []string {
	object := e.newLolcow(name, nil)
	if err := e.client.Get(e.Context(), e.key(name), object); err != nil {
		e.must(client.IgnoreNotFound(err), "reading the Lolcow "+name)
		return nil
	}
	return append([]string{}, object.GetFinalizers()...)
}

// expectGone asserts that the Lolcow cow does not exist.
func (e *env) expectGone() {
	e.Helper()
	if left := e.finalizers("cow"); left != nil {
		e.Fatalf("the Lolcow is not deleted: it has the finalizers %v", left)
	}
}

// expectFinalizers asserts those of the Lolcow cow, which is being deleted.
func (e *env) expectFinalizers(expected ...string) {
	e.Helper()
	switch got := e.finalizers("cow"); {
	case got == nil:
		e.Fatalf("the Lolcow is deleted, although another controller has a finalizer on it: %v", expected)
	case !slices.Equal(got, expected):
		e.Fatalf("the finalizers of the Lolcow are %v; expected %v, which are those of other controllers", got, expected)
	}
}

// addFinalizer does what another controller does.
func (e *env) addFinalizer(name, finalizer string) error {
	e.Event("another controller: the finalizer %s", finalizer)
	object := e.newLolcow(name, nil)
	if err := e.client.Get(e.Context(), e.key(name), object); err != nil {
		return err
	}
	controllerutil.AddFinalizer(object, finalizer)
	return e.client.Update(e.Context(), object)
}

// removeFinalizer does what another controller, or the garbage collector, does at the end.
func (e *env) removeFinalizer(name, finalizer string) {
	e.Event("its owner removes the finalizer %s", finalizer)
	object := e.lolcow(name)
	controllerutil.RemoveFinalizer(object, finalizer)
	e.must(e.client.Update(e.Context(), object), "removing a finalizer")
}

// ownRecords has three Lolcows at once, whose names are alike or long.
func (e *env) ownRecords() {
	e.createWithRecord()
	elsewhere := *e
	elsewhere.namespace = kube.Namespace(e.B)
	e.Cleanup(elsewhere.clear)
	elsewhere.create("cow", fields{"hostname": secondHost})
	elsewhere.settle("cow")
	e.expectRecords("with two Lolcows", secondHost, firstHost)
	long := strings.Repeat("m", 63)
	e.create(long, fields{"hostname": long + ".example.com"})
	e.settle(long)
	e.expectRecords("with three Lolcows", secondHost, firstHost, long+".example.com")
	elsewhere.delete("cow", metav1.DeletePropagationBackground)
	elsewhere.settle("cow")
	e.expectRecords("when one of them is deleted", firstHost, long+".example.com")
}

// otherFinalizers deletes a Lolcow on which another controller has a finalizer, too.
func (e *env) otherFinalizers() {
	e.createWithRecord()
	e.must(e.addFinalizer("cow", otherFinalizer), "adding a finalizer")
	e.settle("cow")
	e.delete("cow", metav1.DeletePropagationBackground)
	e.settle("cow")
	e.expectRecords("after the deletion")
	e.expectFinalizers(otherFinalizer)
	e.quiet()
	e.expectRecords("while the Lolcow waits for another controller")
	e.removeFinalizer("cow", otherFinalizer)
	e.settle("cow")
	e.expectGone()
}

// lateFinalizer has another controller add its finalizer when the operator has read the Lolcow.
func (e *env) lateFinalizer() {
	e.create("cow", fields{"greeting": "Moo", "hostname": firstHost})
	var added error
	done := false
	e.wire.interfere(func(r request) {
		if r.resource == "lolcows" && slices.Contains(writeVerbs, r.verb) && !done {
			done, added = true, e.addFinalizer("cow", otherFinalizer)
		}
	})
	e.attempt()
	e.must(added, "adding a finalizer")
	e.wire.replace(nil)
	e.settle("cow")
	if !slices.Contains(e.finalizers("cow"), otherFinalizer) {
		e.Fatalf("the finalizer that another controller has added meanwhile is lost: the list was written as it had been read")
	}
	e.expectRecords("after the creation", firstHost)
	e.delete("cow", metav1.DeletePropagationBackground)
	e.settle("cow")
	e.expectRecords("after the deletion")
	e.expectFinalizers(otherFinalizer)
}

// modesOfDeletion does what the garbage collector does: in the foreground it deletes the dependents first.
func (e *env) modesOfDeletion() {
	finalizers := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
	}
	for _, mode := range slices.Sorted(maps.Keys(finalizers)) {
		e.createWithRecord()
		made := e.deployment("Moo")
		e.delete("cow", mode)
		e.Event("the garbage collector deletes the dependents, or leaves them")
		for _, dependent := range []client.Object{made, e.service()} {
			e.must(e.client.Delete(e.Context(), dependent), "deleting a dependent")
		}
		e.settle("cow")
		e.expectRecords("after the deletion")
		e.expectFinalizers(finalizers[mode])
		if len(e.deployments())+len(e.services()) > 0 {
			e.Fatalf("the Lolcow is being deleted, and its dependents are created again: the garbage collector waits for their end")
		}
		e.removeFinalizer("cow", finalizers[mode])
		e.settle("cow")
		e.expectGone()
	}
}

// deletedBefore has the operator read a Lolcow for the first time when it is being deleted.
func (e *env) deletedBefore() {
	e.create("cow", fields{"greeting": "Moo", "hostname": firstHost})
	e.must(e.addFinalizer("cow", otherFinalizer), "adding a finalizer")
	e.delete("cow", metav1.DeletePropagationBackground)
	e.settle("cow")
	if e.dns.written() > 0 {
		e.Fatalf("the Lolcow is being deleted, and it gets a record")
	}
	e.expectFinalizers(otherFinalizer)
	e.removeFinalizer("cow", otherFinalizer)
	e.expectGone()
}
