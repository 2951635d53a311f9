// Package secondkind is exercise 18a: a second kind, in which defaults are frozen.
package secondkind

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/exercises/internal/defaults"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader repairs.
type Entry func(ctx context.Context, c client.Client, operator defaults.Defaults, key client.ObjectKey) error

var (
	older = defaults.Defaults{Cores: 1, TasksPerRank: 1}
	newer = defaults.Defaults{Cores: 2, TasksPerRank: 4}
)

// Check reconciles a Flux, with the defaults of two operators.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Flux gets a FluxSetup, which it controls, with all defaults", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle(older)
		s.expect(older.Resolve(s.flux()))
	})
	if !ok {
		return
	}
	t.Behaviour("a Flux of after an upgrade gets the new defaults", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle(newer)
		s.expect(newer.Resolve(s.flux()))
	})
	t.Behaviour("an upgrade does not change a FluxSetup that is there", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle(older)
		s.upgrade()
		s.settle(newer)
		s.expect(older.Resolve(s.flux()))
	})
	checkChanges(t, work.Entry)
	checkOthers(t, work.Entry)
	t.Behaviour("there is one FluxSetup, at whichever write it crashes", func(b *check.B) {
		for _, after := range []bool{false, true} {
			for number := 1; ; number++ {
				s := newScene(b, work.Entry)
				s.process.CrashAt(number, after)
				_ = s.call(older)
				s.upgrade()
				s.settle(newer)
				s.expectOne()
				if !s.process.Crashed() {
					break
				}
			}
		}
	})
}

// checkChanges lets the user change the Flux.
func checkChanges(t *check.T, entry Entry) {
	t.Behaviour("what a user may change arrives, also after an upgrade, and changes nothing else", func(b *check.B) {
		s := newScene(b, entry)
		s.settle(older)
		s.upgrade()
		for _, change := range []func(*v1alpha1.FluxSpec){
			func(spec *v1alpha1.FluxSpec) { spec.Suspend = true },
			func(spec *v1alpha1.FluxSpec) { spec.StartupTimeoutSeconds = 77 },
			func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = new(int64(88)) },
			func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = nil },
			func(spec *v1alpha1.FluxSpec) { spec.Suspend = false },
		} {
			s.change(change)
			s.settle(newer)
			s.expect(older.Resolve(s.flux()))
		}
	})
}

// checkOthers has other writers.
func checkOthers(t *check.T, entry Entry) {
	launch := &v1alpha1.Launch{Attempt: 1, Time: metav1.NewTime(time.Unix(1_700_000_000, 0)), JobUID: "the-job"}
	t.Behaviour("what other controllers have written stays", func(b *check.B) {
		s := newScene(b, entry)
		s.settle(older)
		s.write(launch)
		s.change(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
		s.settle(older)
		s.expectWritten(older.Resolve(s.flux()), launch)
	})
	t.Behaviour("what another controller writes in the middle of it stays, too", func(b *check.B) {
		s := newScene(b, entry)
		s.settle(older)
		s.change(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
		s.beforeTheFirstWrite(func() { s.write(nil) })
		s.settle(older)
		s.expectWritten(older.Resolve(s.flux()), nil)
	})
	t.Behaviour("a FluxSetup that it does not control stays as it is, also if it comes in the middle of it", func(b *check.B) {
		s := newScene(b, entry)
		s.settle(older)
		s.change(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
		var other *v1alpha1.FluxSetup
		s.beforeTheFirstWrite(func() {
			s.deleteSetup()
			other = s.createSetup(uncontrolled[0])
		})
		_ = s.call(older)
		if other == nil {
			b.Fatalf("the user has suspended the Flux, and nothing was written")
		}
		s.expectSame(other)
		s = newScene(b, entry)
		s.beforeTheFirstWrite(func() { other = s.createSetup(uncontrolled[1]) })
		if err := s.call(older); err == nil {
			b.Fatalf("a FluxSetup of that name, which it does not control, was created just before, and Reconcile returned no error")
		}
		s.expectSame(other)
	})
	t.Behaviour("a FluxSetup that it does not control is an error, and stays as it is", func(b *check.B) {
		for _, other := range uncontrolled {
			s := newScene(b, entry)
			before := s.createSetup(other)
			if err := s.call(older); err == nil {
				b.Errorf("the FluxSetup of that name %s, its fields are those of the Flux, and Reconcile returned no error", other.what)
			}
			s.change(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
			if err := s.call(older); err == nil {
				b.Errorf("the FluxSetup of that name %s, and Reconcile returned no error", other.what)
			}
			s.expectSame(before)
		}
	})
}
