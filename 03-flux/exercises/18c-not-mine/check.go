// Package notmine is exercise 18c: objects of an internal kind that a user has written.
package notmine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader changes.
type Entry func(ctx context.Context, c client.Client, key client.ObjectKey) error

const (
	editor = "flux-editor"
	viewer = "fluxsetup-viewer"
)

// Check reconciles FluxSetups of the Flux controller and of users, and asks what users may do.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a FluxSetup that its Flux controls is accepted, and gets its Service", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.createSetup(s.controller(s.createFlux("bees")))
		s.settle()
		s.expectService(true)
		s.expectAccepted(metav1.ConditionTrue, "Owned")
	})
	checkNotOwned(t, work.Entry)
	if ok {
		checkChanges(t, work.Entry)
		checkReads(t, work.Entry)
		checkOthers(t, work.Entry)
	}
	checkRoles(t, work.Dir)
}

// checkNotOwned reconciles FluxSetups that no Flux of their name controls.
func checkNotOwned(t *check.T, entry Entry) {
	t.Behaviour("a FluxSetup without an owner is NotOwned, and gets nothing", func(b *check.B) {
		s := newScene(b, entry)
		s.createSetup()
		s.expectNotOwned()
	})
	t.Behaviour("a Flux of that name does not make it the operator's", func(b *check.B) {
		s := newScene(b, entry)
		s.createFlux("bees")
		s.createSetup()
		s.expectNotOwned()
	})
	t.Behaviour("an earlier Flux of that name, or one that never was, does not own it", func(b *check.B) {
		s := newScene(b, entry)
		owner := s.controller(s.createFlux("bees"))
		owner.UID = "11111111-2222-3333-4444-555555555555"
		s.createSetup(owner)
		s.expectNotOwned()
	})
	t.Behaviour("a Flux of another name does not own it", func(b *check.B) {
		s := newScene(b, entry)
		s.createFlux("bees")
		s.createSetup(s.controller(s.createFlux("wasps")))
		s.expectNotOwned()
	})
	t.Behaviour("an owner that is not the controller does not make it the operator's", func(b *check.B) {
		s := newScene(b, entry)
		owner := s.controller(s.createFlux("bees"))
		owner.Controller = nil
		s.createSetup(owner)
		s.expectNotOwned()
	})
	t.Behaviour("it stays as the user has written it", func(b *check.B) {
		s := newScene(b, entry)
		s.createSetup()
		before := s.setup()
		s.settle()
		s.expectUnchanged(before)
	})
}

// checkChanges reconciles again, with changes in between and without.
func checkChanges(t *check.T, entry Entry) {
	t.Behaviour("a Service that is missing is created, whatever the condition says", func(b *check.B) {
		s := newScene(b, entry)
		s.createSetup(s.controller(s.createFlux("bees")))
		s.failService()
		_ = s.reconcile()
		s.settle()
		s.expectService(true)
		s.deleteService()
		s.failService()
		s.settle()
		s.expectService(true)
	})
	t.Behaviour("it is accepted when the Flux controller has made it its own", func(b *check.B) {
		s := newScene(b, entry)
		flux := s.createFlux("bees")
		s.createSetup()
		s.settle()
		s.setOwner(s.controller(flux))
		s.settle()
		s.expectService(true)
		s.expectAccepted(metav1.ConditionTrue, "Owned")
	})
	t.Behaviour("it is not accepted any more when the Flux is gone", func(b *check.B) {
		s := newScene(b, entry)
		flux := s.createFlux("bees")
		s.createSetup(s.controller(flux))
		s.settle()
		s.deleteFlux(flux)
		s.deleteService()
		s.wire.Fail(1, kube.Writes)
		s.settle()
		s.expectAccepted(metav1.ConditionFalse, "NotOwned")
		s.expectService(false)
	})
	t.Behaviour("nothing is written once the condition is right", func(b *check.B) {
		for _, owned := range []bool{true, false} {
			s := newScene(b, entry)
			flux := s.createFlux("bees")
			if owned {
				s.createSetup(s.controller(flux))
			} else {
				s.createSetup()
			}
			s.settle()
			_ = s.reconcile()
			s.expectNoWrite()
		}
	})
}

// checkReads lets reads fail.
func checkReads(t *check.T, entry Entry) {
	t.Behaviour("a read that fails is an error, if the condition is not right", func(b *check.B) {
		for number, failed := 1, true; failed; number++ {
			s := newScene(b, entry)
			flux := s.createFlux("bees")
			s.createSetup(s.controller(flux))
			s.settle()
			s.deleteFlux(flux)
			var err error
			if failed = s.wire.FailRead(number, func() { err = s.reconcile() }); err == nil {
				s.expectAccepted(metav1.ConditionFalse, "NotOwned")
			}
		}
	})
	t.Behaviour("a Flux that could not be read is not gone", func(b *check.B) {
		s := newScene(b, entry)
		s.createSetup(s.controller(s.createFlux("bees")))
		s.settle()
		for number := 1; s.wire.FailRead(number, func() { _ = s.reconcile() }); number++ {
			s.expectAccepted(metav1.ConditionTrue, "Owned")
			s.expectNoWrite()
		}
		s.settle()
		s.expectAccepted(metav1.ConditionTrue, "Owned")
	})
}

// checkOthers has another controller write conditions.
func checkOthers(t *check.T, entry Entry) {
	t.Behaviour("conditions that another controller has written stay", func(b *check.B) {
		s := newScene(b, entry)
		flux := s.createFlux("bees")
		s.createSetup(s.controller(flux))
		s.writeOtherCondition()
		s.settle()
		s.expectAccepted(metav1.ConditionTrue, "Owned")
		s.expectOtherCondition()
		s.deleteFlux(flux)
		s.settle()
		s.expectAccepted(metav1.ConditionFalse, "NotOwned")
		s.expectOtherCondition()
	})
	t.Behaviour("one that another controller writes in the middle of it stays, too", func(b *check.B) {
		s := newScene(b, entry)
		s.createSetup(s.controller(s.createFlux("bees")))
		s.otherConditionBeforeTheFirstStatus()
		s.settle()
		s.expectAccepted(metav1.ConditionTrue, "Owned")
		s.expectOtherCondition()
	})
}

// checkRoles asks what users with the roles may do.
func checkRoles(t *check.T, dir string) {
	t.Behaviour("with flux-editor a user can work with Fluxes", func(b *check.B) {
		u := newUser(b, dir, editor)
		u.may("create", "delete", "get", "list", "patch", "update", "watch")("fluxes")
	})
	t.Behaviour("with flux-editor a user cannot write the status of a Flux, and nothing of a FluxSetup", func(b *check.B) {
		u := newUser(b, dir, editor)
		u.mayNot(writes...)("fluxes/status", "fluxsetups", "fluxsetups/status", "fluxsetups/finalizers")
		u.mayNot("get", "list", "watch")("fluxsetups")
		u.cannotCreateSetup()
	})
	t.Behaviour("with fluxsetup-viewer a user can read FluxSetups, and watch them", func(b *check.B) {
		u := newUser(b, dir, viewer)
		u.may("get", "list", "watch")("fluxsetups")
	})
	t.Behaviour("with fluxsetup-viewer a user can write nothing, and read nothing else", func(b *check.B) {
		u := newUser(b, dir, viewer)
		u.mayNot(writes...)("fluxsetups", "fluxsetups/status", "fluxsetups/finalizers", "fluxes", "fluxes/status")
		u.mayNot("get", "list", "watch")("fluxes", "fluxes/status")
	})
	t.Behaviour("neither role is about another API group", func(b *check.B) {
		for _, role := range []string{editor, viewer} {
			onlyFlux(b, readRole(b, dir, role))
		}
	})
}
