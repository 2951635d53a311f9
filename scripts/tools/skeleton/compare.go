package main

import (
	"fmt"
	"slices"
	"strings"
)

// commonFiles hold what is the same in all stages that need it.
var commonFiles = []string{"apply.go", "report.go", "conditions.go", "errors.go", "messages.go"}

// commonInMain is what is the same of cmd/main.go.
var commonInMain = []string{
	"managerOptions", "managerOptions.bindFlags", "managerOptions.validate", "start", "startSignal", "startSignal.Start", "startSignal.NeedLeaderElection",
}

// commonElsewhere is what is the same in files that differ otherwise.
var commonElsewhere = []string{
	"queue", "newRateLimiter", "moreThanMessages", "staleTimeout", "retries.reportable", "retries.forget", "requeue", "gatedClient",
}

// comparison collects what differs.
type comparison struct {
	declarations []declaration
	allowed      []exception
	needed       map[exception]bool
	problems     []string
}

// checkTexts reports declarations that two stages have in different texts or in different files.
func checkTexts(operators []*operator, allowed []exception) []string {
	c := comparison{allowed: allowed, needed: map[exception]bool{}}
	for _, o := range operators {
		c.declarations = append(c.declarations, o.declarations...)
	}
	for _, name := range commonInMain {
		c.expectSome(c.compare(controllers(c.named(name), false)), mainFile+": "+name)
	}
	done := map[string]bool{}
	for _, name := range commonElsewhere {
		c.expectSome(c.compare(controllers(c.named(name), true)), name)
	}
	for _, file := range commonFiles {
		compared := 0
		for _, name := range c.declaredIn(file) {
			if !done[name] {
				compared += c.compare(controllers(c.named(name), true))
			}
			done[name] = true
		}
		c.expectSome(compared, file)
	}
	for _, e := range allowed {
		if !c.needed[e] {
			c.problems = append(c.problems, fmt.Sprintf("%s: the exception for %s is not needed: remove it", e.stage, e.declaration))
		}
	}
	return c.problems
}

// expectSome fails what found nothing to compare: it could not fail otherwise.
func (c *comparison) expectSome(compared int, what string) {
	if compared == 0 {
		c.problems = append(c.problems, what+": no two stages have a declaration of it in common: nothing was compared")
	}
}

// compare compares the declarations of one name with the first, and returns how many it compared.
func (c *comparison) compare(found []declaration) int {
	if len(found) < 2 {
		return 0
	}
	first := found[0]
	for _, other := range found[1:] {
		problem := difference(first, other)
		excuse := slices.IndexFunc(c.allowed, func(e exception) bool { return e.stage == other.stage && e.declaration == other.name })
		switch {
		case problem == "":
		case excuse >= 0:
			c.needed[c.allowed[excuse]] = true
		default:
			c.problems = append(c.problems, problem)
		}
	}
	return len(found) - 1
}

// declaredIn are the names that any stage declares in a file, in the order of their first declarations.
func (c *comparison) declaredIn(file string) []string {
	var names []string
	for _, d := range c.declarations {
		if d.file == file && !slices.Contains(names, d.name) {
			names = append(names, d.name)
		}
	}
	return names
}

// named are the declarations of a name. One in a common file comes first: the others are compared with it.
func (c *comparison) named(name string) []declaration {
	var found []declaration
	for _, d := range c.declarations {
		if d.name == name {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b declaration) int { return rank(a) - rank(b) })
	return found
}

func rank(d declaration) int {
	if slices.Contains(commonFiles, d.file) {
		return 0
	}
	return 1
}

// controllers keeps the declarations of internal/controller, or those of cmd/main.go.
func controllers(found []declaration, want bool) []declaration {
	return slices.DeleteFunc(found, func(d declaration) bool { return (d.file != "main.go") != want })
}

// difference describes in what two declarations of one name differ, without the lines that both begin and end with;
// nothing if they are the same.
func difference(one, other declaration) string {
	switch {
	case one.file != other.file:
		return fmt.Sprintf("%s: %s is in %s, and in %s at %s", other.at, other.name, other.file, one.file, one.at)
	case one.text == other.text:
		return ""
	}
	a, b := strings.Split(one.text, "\n"), strings.Split(other.text, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s differs from %s:", other.at, other.name, one.at)
	for _, line := range a {
		out.WriteString("\n    - " + line)
	}
	for _, line := range b {
		out.WriteString("\n    + " + line)
	}
	return out.String()
}
