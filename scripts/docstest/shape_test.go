package docstest

import (
	"strings"
	"testing"
)

// TestShape checks the shape of the chapters that are there.
func TestShape(t *testing.T) {
	t.Parallel()
	problems, err := Shapes("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// shapely is a chapter in which everything is right; ~ stands for the fence of a block.
const shapely = `# 07 Cows

**You will be able to** tell a cow
from a pod.

**Time** 30 s for the commands, 40 min in all. **Needs** Go, make and git; no container engine.

## A cow

~mermaid
flowchart LR
~

## Questions

<details><summary>Moo?</summary>

Moo.

</details>

<details><summary>Why?</summary>

So.

</details>

## Further reading

- [Cows](https://example.com/cows): what there is to know of them.
- [Pods](https://example.com/pods): how they differ from a cow.
- [Milk](https://example.com/milk), which both of them
  give, if you wait.
`

// TestShapeOfSmallChapter breaks a small chapter in every way that the check is there for.
func TestShapeOfSmallChapter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, new, want string }{
		"all right":         {"", "", ""},
		"another number":    {"# 07", "# 08", "its title has the number 08"},
		"no aim":            {"**You will be able to**", "You can", "it does not begin with its title"},
		"no time":           {"**Time** 30 s for the commands, 40 min in all.", "", "it does not begin with its title"},
		"another time":      {"30 s", "2 min", `its time is "2 min, 40 min"`},
		"no needs":          {"**Needs** Go", "Go", "it does not begin with its title"},
		"no diagram":        {"~mermaid", "~text", "it has no diagram"},
		"a drawing instead": {"~mermaid\nflowchart LR\n~", "![cow](cow.svg)", ""},
		"one question":      {"<details><summary>Why?", "<details open><summary>Why?", "it has 1 questions"},
		"another order":     {"## Questions", "## Answers", "its last sections are not"},
		"a section more":    {"  give, if you wait.\n", "  give, if you wait.\n\n## More\n", "its last sections are not"},
		"two readings":      {"- [Milk]", "  [Milk]", "it has 2 further readings"},
		"an empty reading":  {"- [Milk](https://example.com/milk), which both of them\n  give, if you wait.\n", "-\n", "it has 2 further readings"},
		"a bare link":       {": how they differ from a cow", "", "it has 2 further readings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := strings.Replace(shapely, test.old, test.new, 1)
			if test.old != "" && source == shapely {
				t.Fatalf("the chapter has no %q", test.old)
			}
			chapter, err := parse("07-cows.md", []byte(strings.ReplaceAll(source, "~", fence)))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(Shape(chapter, []string{"[07 Cows](07-cows.md)", "cows", "30 s, 40 min", "no engine"}), "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
