package faults

import "slices"

// shrink returns the smallest schedule that still fails in the same way, by leaving out faults and then operations:
// delta debugging. It tries at most so many schedules.
func shrink(schedule Schedule, tries int, fails func(Schedule) bool) (Schedule, int) {
	left := tries
	try := func(one Schedule) bool {
		if left == 0 {
			return false
		}
		left--
		return fails(one)
	}
	schedule.Faults = minimal(schedule.Faults, func(faults []Fault) bool {
		one := schedule
		one.Faults = faults
		return try(one)
	})
	schedule.Ops = minimal(schedule.Ops, func(ops []string) bool {
		one := schedule
		one.Ops = ops
		return try(one)
	})
	return schedule, tries - left
}

// minimal returns a part of a list that fails, and of which no element can be left out.
func minimal[E any](list []E, fails func([]E) bool) []E {
	for parts := 2; len(list) > 0; {
		size := (len(list) + parts - 1) / parts
		smaller := false
		for begin := 0; begin < len(list); begin += size {
			rest := slices.Concat(list[:begin], list[min(begin+size, len(list)):])
			if fails(rest) {
				list, smaller = rest, true
				parts = max(2, parts-1)
				break
			}
		}
		switch {
		case smaller:
		case size == 1:
			return list
		default:
			parts = min(2*parts, len(list))
		}
	}
	return list
}
