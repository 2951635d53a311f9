package broker

import "strings"

// Command returns a script that executes the command, byte for byte. The command is not passed as arguments of the
// container, because those are expanded twice: Kubernetes expands $(X), and Flux's job shell expands {{id}} and the
// like (src/shell/mustache.c), which cannot be escaped. A program whose name begins with a dash is the one exception:
// some shells do not start it.
func (c Cluster) Command() string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n# The command, quoted for the shell, which expands nothing in it.\nset --")
	for _, argument := range c.Argv {
		script.WriteString(" \\\n  " + quote(argument))
	}
	script.WriteString("\nexec \"$@\"\n")
	return script.String()
}

// quote quotes a text as one word for the shell. Between single quotes the shell expands nothing; only the single quote
// itself must be escaped.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
