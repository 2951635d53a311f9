// Package onenamespace is exercise 13c: an operator for one namespace, and the permissions for it.
package onenamespace

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader changes, besides role.yaml.
type Entry func(namespace string) cache.Options

const patience = 10 * time.Second

// The namespace that the operator serves, and another one.
const (
	meadow    = "meadow"
	elsewhere = "default"
)

// needs are the permissions that the operator needs in its namespace.
var needs = []permission{
	{"list", lolcows, "lolcows"}, {"watch", lolcows, "lolcows"},
	{"list", "", "configmaps"}, {"watch", "", "configmaps"}, {"create", "", "configmaps"}, {"update", "", "configmaps"},
}

// excess is what it does not need there.
var excess = []permission{
	{"get", "", "secrets"}, {"list", "", "secrets"},
	{"get", "", "configmaps"}, {"patch", "", "configmaps"}, {"delete", "", "configmaps"}, {"deletecollection", "", "configmaps"},
	{"get", lolcows, "lolcows"}, {"create", lolcows, "lolcows"}, {"update", lolcows, "lolcows"}, {"patch", lolcows, "lolcows"},
	{"delete", lolcows, "lolcows"},
}

// Check asks the API server for the permissions, and runs the operator.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("role.yaml can be applied", func(b *check.B) {
		lab.Install(b, work.Dir)
		apply(b, filepath.Join(work.Dir, "role.yaml"))
	})
	if !ok {
		return
	}
	t.Behaviour("the operator may do in meadow what it needs", func(b *check.B) {
		for _, one := range needs {
			if !permits(b, meadow, one) {
				b.Fatalf("the ServiceAccount cowherd may not %s in meadow", one)
			}
		}
	})
	t.Behaviour("it may do nothing in any other namespace, and in meadow nothing else", func(b *check.B) {
		for _, one := range slices.Concat(needs, excess) {
			if permits(b, elsewhere, one) {
				b.Fatalf("the ServiceAccount cowherd may %s in the namespace %s", one, elsewhere)
			}
		}
		for _, one := range excess {
			if permits(b, meadow, one) {
				b.Fatalf("the ServiceAccount cowherd may %s in meadow, which the operator does not need", one)
			}
		}
	})
	ok = t.Behaviour("the operator lists and watches only the namespace that CacheOptions gets", func(b *check.B) {
		newScene(b, work.Entry, meadow).reads(meadow)
		// There it may do nothing, but it has to ask.
		newScene(b, work.Entry, elsewhere).reads(elsewhere)
	})
	ok = t.Behaviour("a Lolcow of meadow gets its ConfigMap, and a new greeting arrives", func(b *check.B) {
		s := newScene(b, work.Entry, meadow)
		s.create(meadow, "cow")
		s.expect("cow", "Moo")
		s.change()
		s.expect("cow", "Baa")
		s.create(meadow, "calf")
		s.expect("calf", "Moo")
	}) && ok
	if !ok {
		return
	}
	t.Behaviour("a Lolcow of another namespace is left alone", func(b *check.B) {
		s := newScene(b, work.Entry, meadow)
		s.create(elsewhere, "stray")
		// The queue has each of these behind all that the operator may have noticed before.
		for i := range 2 {
			name := fmt.Sprintf("late-%d", i)
			s.create(meadow, name)
			s.expect(name, "Moo")
		}
		if s.greeting(elsewhere, "stray") != "" {
			b.Fatalf("a Lolcow of the namespace %s got a ConfigMap", elsewhere)
		}
	})
}
