package broker

import "strings"

// Command returns a script that becomes the command, byte for byte. It is a file of its own, and not a row of
// arguments, because two on the way expand something in those: Kubernetes $(X), and Flux's job shell {{id}} and the
// like (src/shell/mustache.c), which cannot be written in a way that keeps it. A program whose own name begins with
// a dash is the one thing that some shells do not start.
func (c Cluster) Command() string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n# The command, quoted for the shell, which expands nothing in it.\nset --")
	for _, argument := range c.Argv {
		script.WriteString(" \\\n  " + quote(argument))
	}
	script.WriteString("\nexec \"$@\"\n")
	return script.String()
}

// quote makes one word of the shell of a text. Between single quotes it takes everything as it is but their own end.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
