// Package sixcases is exercise 01c: which of six cases need an operator, and the objects for the others.
package sixcases

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
)

// The verdicts.
const (
	operator = "operator"
	objects  = "objects"
)

// Check applies the objects of each case, and looks for their effect.
func Check(t *check.T, work check.Work[check.Files]) {
	var verdicts map[string]string
	ok := t.Behaviour("verdicts.yaml has a verdict for each case", func(b *check.B) { verdicts = read(b, work.Dir) })
	if !ok {
		return
	}
	for _, one := range cases {
		t.Behaviour(one.behaviour, func(b *check.B) {
			if verdicts[one.name] != one.verdict {
				b.Fatalf("%s: %s", one.name, one.reason)
			}
			if one.effect != nil {
				one.effect(newScene(b, work.Dir, one.name))
			}
		})
	}
}

func read(b *check.B, dir string) map[string]string {
	content, err := os.ReadFile(filepath.Join(dir, "verdicts.yaml"))
	if err != nil {
		b.Fatalf("there is no verdicts.yaml in your folder: %v", err)
	}
	var verdicts map[string]string
	if err := yaml.UnmarshalStrict(content, &verdicts); err != nil {
		b.Fatalf("verdicts.yaml: %v", err)
	}
	for _, one := range cases {
		if verdict := verdicts[one.name]; verdict != operator && verdict != objects {
			b.Fatalf("the verdict of %s is %q, and neither operator nor objects", one.name, verdict)
		}
	}
	return verdicts
}
