package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Classes are the causes that bugs are sorted by.
var Classes = []string{"crash", "lost", "error", "stale", "travel", "watch", "order", "writer", "replicas"}

// Class is the cause that a fault stands for.
func (f Fault) Class() string {
	kind, _, _ := strings.Cut(f.Kind, "/")
	kind, _, _ = strings.Cut(kind, "-")
	switch kind {
	case "crash", "lost", "error":
		return kind
	case "freeze", "behind":
		return "stale"
	case "time":
		return "travel"
	case "delay", "duplicate", "coalesce", "cut":
		return "watch"
	case "order", "clock":
		return "order"
	case "op", "down", "hurry":
		return "writer"
	case "pause":
		return "replicas"
	}
	return ""
}

// stale reports whether a cache may lack what its own process wrote: such schedules run without read-your-writes, and so
// does the undisturbed run that they are compared with.
func (s Schedule) stale() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return slices.Contains([]string{"stale", "travel", "replicas"}, f.Class())
	})
}

// anyMoment reports whether an operation is done while something else is left to do: then only invariants hold.
func (s Schedule) anyMoment() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return strings.HasPrefix(f.Kind, "op/") || f.Kind == "hurry" })
}

// weight is how many things go wrong.
func (s Schedule) weight() int {
	sum := 0
	for _, fault := range s.Faults {
		sum += 1 + fault.Arg
	}
	return sum
}

// faultsAt returns the single faults that are possible at an address.
func (s *Suite) faultsAt(at string) []Fault {
	verb, _, _ := strings.Cut(at, " ")
	var kinds []Fault
	switch verb {
	case "POST", "PUT", "PATCH", "DELETE", "GET", "LIST":
		kinds = append(faultsOfRequest(verb), s.others()...)
	case "ADDED", "MODIFIED", "DELETED":
		kinds = []Fault{
			{Kind: "freeze"}, {Kind: "duplicate"}, {Kind: "coalesce"},
			{Kind: "delay", Arg: 1}, {Kind: "delay", Arg: 3}, {Kind: "cut", Arg: 1}, {Kind: "cut", Arg: 3}, {Kind: "behind", Arg: 1}, {Kind: "behind", Arg: 3},
		}
	case "KEY":
		kinds = append([]Fault{{Kind: "order"}, {Kind: "clock", Arg: 7200}}, s.others()...)
	case "OP":
		kinds = []Fault{{Kind: "down", Arg: 1}, {Kind: "hurry", Arg: 1}}
	}
	for i := range kinds {
		kinds[i].On = at
	}
	return kinds
}

// others are the operations of others, as faults.
func (s *Suite) others() []Fault {
	var kinds []Fault
	for _, op := range s.Anytime {
		kinds = append(kinds, Fault{Kind: "op/" + op.Name})
	}
	return kinds
}

func faultsOfRequest(verb string) []Fault {
	kinds := []Fault{
		{Kind: "crash-before"}, {Kind: "crash-after"}, {Kind: "lost-before"}, {Kind: "lost-after"},
		{Kind: "error-403"}, {Kind: "error-422"}, {Kind: "error-429"}, {Kind: "error-500"}, {Kind: "error-504"},
		{Kind: "time-travel", Arg: 1}, {Kind: "time-travel", Arg: 3}, {Kind: "pause", Arg: 1}, {Kind: "pause", Arg: 6},
	}
	if verb != "POST" && verb != "LIST" {
		kinds = append(kinds, Fault{Kind: "error-404"})
	}
	if verb != "GET" && verb != "LIST" {
		kinds = append(kinds, Fault{Kind: "error-409"}, Fault{Kind: "error-409", Arg: 5})
	}
	return kinds
}

// singles returns all schedules with one fault, of a class or of all.
func (s *Suite) singles(name string, addresses []string, class string) []Schedule {
	var all []Schedule
	for _, at := range addresses {
		for _, fault := range s.faultsAt(at) {
			if class == "" || fault.Class() == class {
				all = append(all, Schedule{Suite: name, Ops: s.story(), Faults: []Fault{fault}})
			}
		}
	}
	return all
}

// story returns the names of the operations.
func (s *Suite) story() []string {
	var names []string
	for _, op := range s.Story {
		names = append(names, op.Name)
	}
	return names
}

// random returns the schedule of a seed: up to four faults, and in one of three up to two operations of others, in steady
// state, among those of the story.
func (s *Suite) random(name string, addresses []string, class string, seed uint64) Schedule {
	random := rand.New(rand.NewPCG(seed, 0x5eed))
	schedule := Schedule{Suite: name, Seed: seed, Ops: s.story()}
	if len(s.Anytime) > 0 && random.IntN(3) == 0 {
		for range 1 + random.IntN(2) {
			at := 1 + random.IntN(len(schedule.Ops))
			schedule.Ops = slices.Insert(schedule.Ops, at, s.Anytime[random.IntN(len(s.Anytime))].Name)
		}
	}
	wanted := 1 + random.IntN(4)
	for range 40 * wanted {
		if len(schedule.Faults) == wanted {
			break
		}
		possible := s.faultsAt(addresses[random.IntN(len(addresses))])
		if len(possible) == 0 {
			continue
		}
		// Kinds are drawn first, or those with many variants are most of all.
		kind := possible[random.IntN(len(possible))].Class()
		if class != "" {
			kind = class
		}
		possible = slices.DeleteFunc(possible, func(f Fault) bool { return f.Class() != kind })
		if len(possible) > 0 {
			schedule.Faults = append(schedule.Faults, possible[random.IntN(len(possible))])
		}
	}
	return schedule
}
