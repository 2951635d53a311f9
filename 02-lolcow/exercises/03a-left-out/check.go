// Package leftout is exercise 03a: a module that builds alone.
package leftout

import (
	"example.com/workbook/shared/exercise/check"
)

// Check builds and tests copies of the reader's folder.
func Check(t *check.T, work check.Work[check.Files]) {
	works := t.Behaviour("in the workspace, all modules build, and TestTea passes", func(b *check.B) {
		c := newCopy(b, work.Dir, "")
		if file, _ := c.run(".", inWorkspace, "env", "GOWORK"); file == "" {
			b.Fatalf("your folder has no go.work")
		}
		c.passes(inWorkspace)
	})
	if works {
		t.Behaviour("TestTea fails with a kettle that makes coffee", func(b *check.B) {
			c := newCopy(b, work.Dir, "")
			c.makeCoffee()
			c.fails()
		})
	}
	built := t.Behaviour("a copy of kettle builds", func(b *check.B) {
		c := newCopy(b, work.Dir, "kettle")
		c.must(alone, inACopy, "build", "./...")
		if deps, _ := c.run(".", alone, "list", "-deps", "."); !contains(deps, "github.com/spf13/pflag") {
			b.Fatalf("kettle does not use pflag any more")
		}
	})
	if built {
		checkCopy(t, work.Dir)
	}
	t.Behaviour("in your folder, all modules build without the workspace, and TestTea passes", func(b *check.B) {
		newCopy(b, work.Dir, "").passes(alone)
	})
}

// checkCopy looks at a copy of kettle that builds.
func checkCopy(t *check.T, dir string) {
	vetted := t.Behaviour("so do the tests that it has", func(b *check.B) {
		newCopy(b, dir, "kettle").must(alone, inACopy, "vet", "./...")
	})
	// Otherwise Go would look in the network for what is missing.
	if vetted {
		t.Behaviour("and it is tidy", func(b *check.B) {
			newCopy(b, dir, "kettle").must(alone, inACopy, "mod", "tidy", "-diff")
		})
	}
	t.Behaviour("the harness is not part of it", func(b *check.B) {
		c := newCopy(b, dir, "kettle")
		for _, module := range c.modules() {
			if path, _ := c.run(module, alone, "list", "-m"); path == harness {
				b.Fatalf("the module %s is in the folder kettle: each user of kettle gets it, too", path)
			}
		}
	})
	t.Behaviour("no go.work in the copy decides how it builds", func(b *check.B) {
		newCopy(b, dir, "kettle").must(inWorkspace, inACopy+", where Go looks for a go.work", "build", "./...")
	})
}
