// Package logkeys is exercise 16c: a log that programs can search, and an error that is not retried.
package logkeys

import (
	"fmt"
	"strings"
	"time"

	"example.com/workbook/02-lolcow/exercises/internal/operator"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader repairs.
type Entry = operator.Setup

const patience = 5 * time.Second

const (
	// greetings are so many, and after some of them every message and every key has been seen.
	greetings, known = 50, 10
	// noLabel is a greeting that is no value of a label, and invalid what the API server says of it.
	noLabel = "Moo, and once more: moo"
	invalid = "a valid label"
	// away is what a client says of an API server that is away.
	away = "connection refused"
)

// Check runs the controller, and reads its log.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the ConfigMap has the greeting of the Lolcow, also a new one", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.change("Baa")
		s.expectLabel("Baa")
	})
	if !ok {
		return
	}
	t.Behaviour("a new greeting is logged as a value", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.change("Baa")
		b.Eventually(patience, func() string {
			if s.count(func(line operator.Line) bool { return hasValue(line, "Baa") }) == 0 {
				return "the greeting is Baa now, and no line of the log has that as a value"
			}
			return ""
		})
	})
	t.Behaviour("50 greetings have the same message and the same keys", func(b *check.B) { constant(b, work.Entry) })
	t.Behaviour("a greeting that the API server rejects is in the log once, and is not retried", func(b *check.B) { rejected(b, work.Entry) })
	t.Behaviour("a write that fails for another reason is in the log once, and is retried", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.Wire.Fail(2, func(r kube.Request) bool { return kube.Writes(r) && r.Resource == "configmaps" })
		s.change("Baa")
		s.expectLabel("Baa")
		if n := s.count(func(line operator.Line) bool { return strings.Contains(text(line), away) }); n != 2 {
			b.Fatalf("two writes have failed, and the log has %d lines about it", n)
		}
		s.Reconcile(s.request()) // the line is logged by then
		if n := s.count(func(line operator.Line) bool { return !line.Failure && hasValue(line, "Baa") }); n != 1 {
			b.Fatalf("the greeting was written once, after two writes that failed, and %d lines of the log have it", n)
		}
	})
	t.Behaviour("a write that is forbidden is retried: no event says that it is permitted now", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.reject(2, s.exceeded())
		s.change("Baa")
		s.expectLabel("Baa")
	})
	t.Behaviour("so is a conflict: no event says that another client has written the ConfigMap", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.reject(2, s.changed())
		s.change("Baa")
		s.expectLabel("Baa")
	})
}

// constant changes the greeting many times, and looks for messages and keys that are new after some of them.
func constant(b *check.B, entry Entry) {
	s := newScene(b, entry)
	messages, keys := map[string]bool{}, map[string]bool{}
	for i := range greetings {
		greeting := fmt.Sprintf("Moo-%d", i)
		s.change(greeting)
		s.expectLabel(greeting)
		s.Reconcile(s.request()) // the line is logged by then
		for _, line := range s.news() {
			if line.Failure {
				continue // a cache that is behind leads to a Conflict now and then
			}
			if i >= known && !messages[line.Message] {
				b.Fatalf("the greeting is another one, and the message is, too: %q", line.Message)
			}
			messages[line.Message] = true
			for key := range line.Fields {
				if i >= known && !keys[key] {
					b.Fatalf("the greeting is another one, and so is a key: %q", key)
				}
				keys[key] = true
			}
		}
	}
}

// rejected changes the greeting to one that can be no label, and then back to one that can.
func rejected(b *check.B, entry Entry) {
	s := newScene(b, entry)
	before := s.Queue().Retries()
	s.change(noLabel)
	b.Eventually(patience, func() string {
		if s.count(aboutLabel) == 0 {
			return "the API server has rejected the label, and the log does not say so"
		}
		return ""
	})
	s.Idle(1)
	if s.Queue().Retries() > before {
		b.Fatalf("the API server has rejected the label, which only a change of the spec can help, and the controller tries again")
	}
	if n := s.count(aboutLabel); n != 1 {
		b.Fatalf("the API server has rejected one write, and the log has %d lines about it", n)
	}
	s.change("Baa")
	s.expectLabel("Baa")
}

// text is all that a line says.
func text(line operator.Line) string {
	return line.Message + "\n" + line.Error + "\n" + fmt.Sprint(line.Fields)
}

// aboutLabel says whether a line is about the rejected greeting.
func aboutLabel(line operator.Line) bool {
	return strings.Contains(text(line), invalid) || line.Failure && strings.Contains(text(line), noLabel)
}

// hasValue says whether a value of the line has a text.
func hasValue(line operator.Line, want string) bool {
	for _, value := range line.Fields {
		if strings.Contains(fmt.Sprint(value), want) {
			return true
		}
	}
	return false
}
