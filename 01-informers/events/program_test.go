package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// The whole program, line by line: what it prints is what the chapters quote.
func TestProgram(t *testing.T) {
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	for _, fact := range []struct{ name, line string }{
		{"what it is about", "Normal, Copied: regarding ConfigMap subject, related ConfigMap other"},
		{"what was done", `action Copy by example.com/events-lesson, note "copied 3 keys from other"`},
		{"where it is", "in the namespace of what it is about: true; name begins with subject's: true"},
		{"nobody waits", "10 calls returned; written: 0"},
		{"it is written later", "the server answers; written: 10"},
		{"a series", `5 calls: 1 create, 1 patch. On the server 1 Event, count 2, note "attempt 1"`},
		{"a changed object breaks it", "its resourceVersion is part of the key. Events now: 2"},
		{"a refusal is final", "4 calls: 3 sent, 2 refused and not tried again"},
		{"1,024 bytes fit", "Fits       1"},
		{"1,025 do not", "TooLong    0"},
		{"an action is required", "NoAction   0"},
		{"a type is Normal or Warning", "NoSuchType 0"},
		{"the rights it needs", "with create and patch: 1 create, 1 patch, refused 0"},
		{"without patch", "with create: 1 create, 1 patch, refused 1"},
		{"the wrong order at the end", "cancel first:           0 of 3 written"},
		{"the right order at the end", "wait, Shutdown, cancel: 3 of 3 written"},
	} {
		t.Run(fact.name, func(t *testing.T) {
			NewWithT(t).Expect(out).To(ContainSubstring(fact.line))
		})
	}
}
