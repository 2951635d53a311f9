package broker

import (
	"fmt"
	"strings"
	"text/template"
)

// parse reads a template of this package, which is a part of the program: a mistake in it is one of its authors.
func parse(name, text string) *template.Template {
	return template.Must(template.New(name).Parse(text))
}

// fill returns what becomes of a template of this package with values.
func fill(t *template.Template, values any) string {
	var out strings.Builder
	if err := t.Execute(&out, values); err != nil {
		panic(fmt.Sprintf("filling in %s: %v", t.Name(), err))
	}
	return out.String()
}
