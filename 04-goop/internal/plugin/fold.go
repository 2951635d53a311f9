package plugin

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var number = regexp.MustCompile(`[0-9]+`)

// joinFolded shortens a list of names: names that differ only in one number become one, as in node[1-3,7].
func joinFolded(all []string) string { return strings.Join(foldNames(all), ",") }

// foldNames returns the names that joinFolded joins. It folds the last number of the names first, and then the numbers before it.
func foldNames(all []string) []string {
	parts := map[string][][]string{} // the numbers of names, by what is around them
	for _, name := range all {
		around := number.ReplaceAllString(name, "\x00")
		parts[around] = append(parts[around], number.FindAllString(name, -1))
	}
	var names []string
	for around, numbers := range parts {
		for at := strings.Count(around, "\x00") - 1; at >= 0; at-- {
			numbers = foldOne(numbers, at)
		}
		for _, values := range numbers {
			name := around
			for _, part := range values {
				name = strings.Replace(name, "\x00", part, 1)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// foldOne combines names that differ only in the number at one position. Numbers that are folded already are compared as
// text.
func foldOne(all [][]string, at int) [][]string {
	families := map[string][]uint64{}
	like := map[string][]string{}
	var folded [][]string
	for _, numbers := range all {
		value, err := strconv.ParseUint(numbers[at], 10, 63)
		if err != nil { // too long for a number
			folded = append(folded, numbers)
			continue
		}
		others := slices.Clone(numbers)
		others[at] = ""
		width := 0
		if len(numbers[at]) > 1 && numbers[at][0] == '0' { // 07 and 7 are different nodes
			width = len(numbers[at])
		}
		family := strconv.Itoa(width) + " " + strings.Join(others, " ")
		families[family] = append(families[family], value)
		like[family] = numbers
	}
	for family, values := range families {
		numbers := slices.Clone(like[family])
		width, _, _ := strings.Cut(family, " ")
		padding, _ := strconv.Atoi(width)
		numbers[at] = ranges(values, padding)
		folded = append(folded, numbers)
	}
	return folded
}

// ranges formats numbers as [1-3,7], and a single one without brackets.
func ranges(numbers []uint64, width int) string {
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	padded := func(n uint64) string {
		text := strconv.FormatUint(n, 10)
		return strings.Repeat("0", max(0, width-len(text))) + text
	}
	if len(numbers) == 1 {
		return padded(numbers[0])
	}
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := padded(numbers[i])
		if last > i {
			part += "-" + padded(numbers[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return "[" + strings.Join(parts, ",") + "]"
}
