package main

import (
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
)

// style is how a name is told from the letters around it.
type style int

const (
	// address is a module path or a domain: my.domain in lolcows.my.domain and in my.domain_lolcows,
	// but not in my.domains or not-my.domain.
	address style = iota
	// camel is a word that begins with a capital: Lolcow in newLolcowList, but not in Lolcowish.
	camel
	// lower is a word in small letters: lolcow in lolcow-system and in lolcowImage.
	lower
	// upper is a word in capitals: LOLCOW in IMAGE_LOLCOW.
	upper
	// phrase is taken as it is.
	phrase
)

// name is one name of the stage, and what becomes of it.
type name struct {
	old, new string
	// beforeCapital is what a lower name becomes in front of a capital: teaPot in teaPotImage.
	beforeCapital string
	style         style
}

// word returns the ways in which one word is written: Lolcow, lolcow and LOLCOW.
func word(from, to string) []name {
	return []name{
		{old: from, new: to, style: camel},
		{old: strings.ToLower(from), new: strings.ToLower(to), beforeCapital: lowerFirst(to), style: lower},
		{old: strings.ToUpper(from), new: strings.ToUpper(to), style: upper},
	}
}

// kindNames returns every name that follows from a kind's: singular and plural, as controller-gen
// makes the plural.
func kindNames(from, to string) []name {
	return append(word(from, to), word(plural(from), plural(to))...)
}

// plural keeps the capitals of a kind: TeaPot, TeaPots; Policy, Policies.
func plural(kind string) string {
	many := flect.Pluralize(strings.ToLower(kind))
	same := 0
	for same < min(len(kind), len(many)) && strings.ToLower(kind)[same] == many[same] {
		same++
	}
	return kind[:same] + many[same:]
}

// shortName is an abbreviation for kubectl: the first three letters, or two of a kind that has no
// more than three, and the initials of what a second kind is called beyond the first. Kubernetes has some such names
// itself: then it is another.
func shortName(kind, primary string) string {
	initials := strings.Map(func(letter rune) rune {
		if letter < 'A' || letter > 'Z' {
			return -1
		}
		return letter
	}, strings.TrimPrefix(kind, primary))
	return abbreviation(strings.ToLower(primary)) + strings.ToLower(initials)
}

func abbreviation(word string) string {
	length := 3
	if len(word) <= length {
		length = min(2, len(word))
	}
	var candidates []string
	for ; length < len(word); length++ {
		candidates = append(candidates, word[:length])
	}
	for i := 2; i < len(word); i++ {
		candidates = append(candidates, word[:1]+word[i:i+1])
	}
	for _, candidate := range candidates {
		// A second kind's may be one letter longer.
		if builtinNames[candidate] == "" && builtinNames[candidate+"s"] == "" {
			return candidate
		}
	}
	return word
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// renamer replaces names, and nothing else, in any piece of text.
type renamer struct {
	names []name // longest first: FluxSetup before Flux
	keep  []keepRule
}

func newRenamer(names []name, keep []keepRule) *renamer {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b name) int { return len(b.old) - len(a.old) })
	return &renamer{names: names, keep: keep}
}

// text returns s with every name of the stage replaced, except in what is to be kept in that place.
func (r *renamer) text(at place, s string) string {
	kept := r.kept(at, s)
	var out strings.Builder
	for i := 0; i < len(s); {
		if end := kept.from(i); end > i {
			out.WriteString(s[i:end])
			i = end
			continue
		}
		replacement, length := r.match(s, i)
		if length == 0 {
			replacement, length = s[i:i+1], 1
		}
		out.WriteString(replacement)
		i += length
	}
	return out.String()
}

func (r *renamer) match(s string, i int) (replacement string, length int) {
	for _, n := range r.names {
		if !strings.HasPrefix(s[i:], n.old) || !n.stands(s, i) {
			continue
		}
		if next := at(s, i+len(n.old)); n.beforeCapital != "" && isUpper(next) {
			return n.beforeCapital, len(n.old)
		}
		return n.new, len(n.old)
	}
	return "", 0
}

// stands reports whether the name at s[i:] is one, and not a part of something longer.
func (n name) stands(s string, i int) bool {
	before, after := at(s, i-1), at(s, i+len(n.old))
	if at(s, i-2) == '\\' && strings.IndexByte("abfnrtv", before) >= 0 {
		before = ' ' // as in "\nlolcow"
	}
	switch n.style {
	case address:
		return !inAddress(before) && !inAddress(after)
	case camel:
		return !isLower(after)
	case lower:
		return !isLetter(before) && !isLower(after)
	case upper:
		return !isLetter(before) && !isLetter(after)
	default:
		return true
	}
}

// inAddress reports whether c would make a longer name of a domain or of a folder beside it.
func inAddress(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

// at returns s[i], or a blank beyond the ends.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return ' '
	}
	return s[i]
}

func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
