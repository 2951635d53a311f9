package broker

import (
	"fmt"
	"strings"
	"text/template"
)

// parse parses a template of this package. The template is compiled in, so an error in it is a bug.
func parse(name, text string) *template.Template {
	return template.Must(template.New(name).Parse(text))
}

// fill executes a template of this package.
func fill(t *template.Template, values any) string {
	var out strings.Builder
	if err := t.Execute(&out, values); err != nil {
		panic(fmt.Sprintf("filling in %s: %v", t.Name(), err))
	}
	return out.String()
}
