package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxListed limits how many items a list may expand to.
const maxListed = 1 << 16

var (
	errHosts = errors.New("not a list of hosts such as demo-[0-3]")
	errIDs   = errors.New("not a list of numbers such as 0-3")
)

// ExpandHosts returns the hosts of a list such as demo-[0-3,7],other in their order.
func ExpandHosts(list string) ([]string, error) {
	var hosts []string
	for rest := list; ; {
		end := wordEnd(rest)
		more, err := expandWord(rest[:end])
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, more...)
		if end == len(rest) {
			return hosts, nil
		}
		rest = rest[end+1:]
	}
}

// wordEnd is the position of the first comma that is not in brackets.
func wordEnd(list string) int {
	inside := false
	for i, c := range list {
		switch {
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case c == ',' && !inside:
			return i
		}
	}
	return len(list)
}

func expandWord(word string) ([]string, error) {
	prefix, rest, found := strings.Cut(word, "[")
	if !found {
		if word == "" || strings.Contains(word, "]") {
			return nil, errHosts
		}
		return []string{word}, nil
	}
	inside, suffix, found := strings.Cut(rest, "]")
	if !found || strings.ContainsAny(suffix, "[]") {
		return nil, errHosts
	}
	var hosts []string
	for part := range strings.SplitSeq(inside, ",") {
		first, last, err := bounds(part)
		if err != nil {
			return nil, errHosts
		}
		width := len(strings.SplitN(part, "-", 2)[0]) // 08-11 keeps its leading zeros
		for n := first; n <= last; n++ {
			hosts = append(hosts, fmt.Sprintf("%s%0*d%s", prefix, width, n, suffix))
		}
	}
	return hosts, nil
}

// CountIDs returns how many numbers a list such as 0-3,7 contains.
func CountIDs(list string) (int, error) {
	seen := map[int]bool{}
	for part := range strings.SplitSeq(list, ",") {
		first, last, err := bounds(part)
		if err != nil {
			return 0, err
		}
		for n := first; n <= last; n++ {
			seen[n] = true
		}
	}
	return len(seen), nil
}

// bounds parses 3 or 0-3.
func bounds(part string) (first, last int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 0 || last < first || last-first >= maxListed {
		return 0, 0, errIDs
	}
	return first, last, nil
}

// JoinIDs formats sorted numbers as a list: 0-3,7.
func JoinIDs(ids []int) string {
	var parts []string
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
			last++
		}
		part := strconv.Itoa(ids[i])
		if last > i {
			part += "-" + strconv.Itoa(ids[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// JoinHosts formats hosts as a list, if they differ only in a number at their end: demo-[0-3,7].
func JoinHosts(hosts []string) string {
	if len(hosts) < 2 {
		return strings.Join(hosts, "")
	}
	var ids []int
	prefix := ""
	for i, host := range hosts {
		head := strings.TrimRight(host, "0123456789")
		id, err := strconv.Atoi(host[len(head):])
		if i == 0 {
			prefix = head
		}
		if err != nil || head != prefix || head+strconv.Itoa(id) != host {
			return strings.Join(hosts, ",")
		}
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) {
		return strings.Join(hosts, ",")
	}
	return prefix + "[" + JoinIDs(ids) + "]"
}
