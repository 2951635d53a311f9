package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
)

// The first stage has two implementations, and what they share in a package of its own: its skeleton is another one. But what
// it has in common with the others is the same text.
var first = stage{"01-informers", []string{"Foo"}}

const firstDir = "internal/foo"

// commonWithFirst is what the first stage and others declare alike, in whichever files.
var commonWithFirst = []string{
	"address", "localEnd", "duration", "normalizeMessage", "shorten", "maxEventNote", "denial", "isDenied", "covers", "setCondition", "conditionOf",
	"deploymentCondition", "desiredReplicas", "rolledOut",
}

// loadFirst reads the declarations of the first stage.
func loadFirst(root string, s stage) (*operator, error) {
	dir := filepath.Join(root, s.dir, firstDir)
	files, err := sources(dir)
	if err != nil {
		return nil, err
	}
	o := &operator{stage: s, module: s.dir}
	text := reader{operator: o, root: root, fset: token.NewFileSet()}
	for _, name := range files {
		file, err := parser.ParseFile(text.fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if err := text.declarations(file); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// checkFirst reports what the first stage declares in another text than the others.
func checkFirst(first *operator, operators []*operator, names []string) []string {
	var c comparison
	for _, o := range append([]*operator{first}, operators...) {
		c.declarations = append(c.declarations, o.declarations...)
	}
	for _, name := range names {
		found := c.named(name)
		for i := range found {
			found[i].file = ""
		}
		if len(found) < 2 || !slices.ContainsFunc(found, func(d declaration) bool { return d.stage == first.dir }) {
			c.problems = append(c.problems, fmt.Sprintf("%s: %s is not declared here and in another stage: nothing was compared", first.dir, name))
			continue
		}
		c.compare(found)
	}
	return c.problems
}
