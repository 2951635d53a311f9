// Package leftout is exercise 03a: a module that builds alone.
package leftout

import (
	"example.com/workbook/shared/exercise/check"
)

// Check builds and tests copies of the reader's folder.
func Check(t *check.T, work check.Work[check.Files]) {
	t.Behaviour("in the workspace, all modules build, and TestTea passes", func(b *check.B) {
		c := newCopy(b, work.Dir, "")
		if file, _ := c.run(".", inWorkspace, "env", "GOWORK"); file == "" {
			b.Fatalf("your folder has no go.work")
		}
		c.passes(inWorkspace)
	})
	built := t.Behaviour("a copy of kettle builds", func(b *check.B) {
		c := newCopy(b, work.Dir, "kettle")
		c.must(alone, "in a copy of kettle", "build", "./...")
		if deps, _ := c.run(".", alone, "list", "-deps", "."); !contains(deps, "github.com/spf13/pflag") {
			b.Fatalf("kettle does not use pflag any more")
		}
	})
	if built {
		t.Behaviour("so do the tests that it has", func(b *check.B) {
			newCopy(b, work.Dir, "kettle").must(alone, "in a copy of kettle", "vet", "./...")
		})
		t.Behaviour("and it is tidy", func(b *check.B) {
			newCopy(b, work.Dir, "kettle").must(alone, "in a copy of kettle", "mod", "tidy", "-diff")
		})
		t.Behaviour("no go.work in the copy decides how it builds", func(b *check.B) {
			newCopy(b, work.Dir, "kettle").must(inWorkspace, "in a copy of kettle, where Go looks for a go.work", "build", "./...")
		})
	}
	t.Behaviour("in your folder, all modules build without the workspace, and TestTea passes", func(b *check.B) {
		newCopy(b, work.Dir, "").passes(alone)
	})
}
