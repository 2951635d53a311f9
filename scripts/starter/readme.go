package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed readme.md.tmpl
var readme string

//go:embed ci.yml
var workflow []byte

// writeWorkflow gives the copy a CI of its own: the workbook's proves the workbook.
func writeWorkflow(dest string) error {
	file := filepath.Join(dest, ".github", "workflows", "ci.yml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the workflow: %w", err)
	}
	if err := os.WriteFile(file, workflow, 0o644); err != nil {
		return fmt.Errorf("writing the workflow: %w", err)
	}
	return nil
}

// writeReadme gives the copy a README of its own: the stage's speaks of the workbook.
func writeReadme(dest string, o options, s *stage, r *renamer) error {
	kinds := []string{}
	for _, resource := range s.Resources {
		kinds = append(kinds, s.renamedKind(resource.Kind, o.Kind))
	}
	folders := []folder{{"`internal/controller/`", "the reconciler"}}
	if len(s.hints.Folders) > 0 {
		folders = nil
	}
	for _, f := range s.hints.Folders {
		at := place{file: "hack/starter.yaml"}
		folders = append(folders, folder{r.text(at, f.Name), r.text(at, f.What)})
	}
	values := map[string]any{
		"Folders": folders,
		"Project": o.project(),
		"Cluster": o.cluster(),
		"Kind":    o.Kind,
		"Kinds":   strings.Join(kinds, " and "),
		"Plural":  plural(strings.ToLower(o.Kind)),
		"Group":   group(map[bool]string{true: strings.ToLower(o.Kind)}[s.Resources[0].Group != ""], o.Domain),
		"Version": s.Resources[0].Version,
		"Harness": harness,
	}
	file, err := os.Create(filepath.Join(dest, "README.md"))
	if err != nil {
		return fmt.Errorf("writing the README: %w", err)
	}
	defer file.Close()
	if err := template.Must(template.New("README.md").Parse(readme)).Execute(file, values); err != nil {
		return fmt.Errorf("writing the README: %w", err)
	}
	return file.Close()
}
