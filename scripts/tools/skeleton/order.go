package main

import (
	"fmt"
	"slices"
	"strings"
)

// checkFiles reports files that the package comment does not list exactly once, and listed files that are not there.
func (o *operator) checkFiles() []string {
	var problems []string
	report := func(file, what string) {
		problems = append(problems, fmt.Sprintf("%s/%s: the package comment %s %s", o.dir, controllerDir, what, file))
	}
	times := map[string]int{}
	for _, file := range o.listed {
		times[file]++
		if times[file] == 2 {
			report(file, "lists more than once")
		}
		if !slices.Contains(o.files, file) {
			report(file, "lists what is not there:")
		}
	}
	for _, file := range o.files {
		if times[file] == 0 {
			report(file, "does not list")
		}
	}
	return problems
}

// sequence is the order of reading for one kind: the common files and the kind's own, without the kind's prefix.
type sequence struct {
	name  string
	dir   string
	files []string
}

func (o *operator) sequences() []sequence {
	var all []sequence
	for _, kind := range o.kinds {
		s := sequence{name: o.dir + " (" + kind + ")", dir: o.dir}
		for _, file := range o.listed {
			prefix, rest, _ := strings.Cut(file, "_")
			switch {
			case prefix == strings.ToLower(kind):
				s.files = append(s.files, rest)
			case !slices.ContainsFunc(o.kinds, func(other string) bool { return prefix == strings.ToLower(other) }):
				s.files = append(s.files, file)
			}
		}
		all = append(all, s)
	}
	return all
}

// checkOrder reports files that are listed in one order here and in another there.
func checkOrder(operators []*operator) []string {
	var all []sequence
	for _, o := range operators {
		all = append(all, o.sequences()...)
	}
	var problems []string
	for i, one := range all {
		for _, other := range all[i+1:] {
			problems = append(problems, compareOrder(one, other)...)
		}
	}
	return problems
}

func compareOrder(one, other sequence) []string {
	var common []string
	for _, file := range one.files {
		if slices.Contains(other.files, file) {
			common = append(common, file)
		}
	}
	if len(common) < 2 {
		return []string{fmt.Sprintf("%s and %s do not have two files in common: nothing was compared", one.name, other.name)}
	}
	var problems []string
	for i, file := range common[1:] {
		before := common[i]
		if slices.Index(other.files, before) > slices.Index(other.files, file) {
			problems = append(problems, fmt.Sprintf("%s comes before %s in %s, and after it in %s", before, file, one.name, other.name))
		}
	}
	return problems
}
