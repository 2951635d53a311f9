// Package guard is exercise 03b: a tool that deletes only where it may.
package guard

import (
	"context"
	"strings"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader completes.
type Entry func(ctx context.Context, kubeconfig, allow, namespace string) error

// Check runs the tool with kubeconfigs of several kinds.
func Check(t *check.T, work check.Work[Entry]) {
	t.Behaviour("in the context that is allowed, the namespace is deleted", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.deletes(s.file("dev", "dev"))
		s.deletes(s.file("dev", "dev", "production"))
	})
	t.Behaviour("in another context: an error that names it, and no request", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.rejects("dev", "production", s.file("production", "production"))
	})
	t.Behaviour("if the context that is allowed is not the current one, it is not used", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.rejects("dev", "production", s.file("production", "production", "dev"))
	})
	t.Behaviour("a context is not allowed because its name is like the one that is", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.rejects("dev", "dev-of-production", s.file("dev-of-production", "dev-of-production"))
		s.rejects("dev", "production-dev", s.file("production-dev", "production-dev"))
		s.rejects("dev-2", "dev", s.file("dev", "dev"))
		s.rejects("dev", "DEV", s.file("DEV", "DEV"))
	})
	t.Behaviour("if nothing is allowed, no context is", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.rejects("", "production", s.file("production", "production"))
		s.rejects("", "", s.file("", "production"))
	})
	t.Behaviour("of several files, the first with a current context decides", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.deletes(s.file("", "production"), s.file("dev", "dev"), s.file("production"))
		s.rejects("dev", "production", s.file("", "dev"), s.file("production", "production"), s.file("dev"))
	})
	t.Behaviour("a file of the list that does not exist is left out", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.deletes(s.missing(), s.file("dev", "dev"))
		s.rejects("dev", "production", s.missing(), s.file("production", "production"))
	})
}

// deletes asserts that the tool deletes the namespace, where dev is allowed.
func (s *scene) deletes(files ...string) {
	if err := s.run("dev", files); err != nil {
		s.b.Fatalf("the current context dev is allowed, and the tool returned an error: %v", err)
	}
	s.nothingSent()
	if !s.deleted() {
		s.b.Fatalf("the current context dev is allowed, and the namespace is still there")
	}
}

// rejects asserts that the tool returns an error that has the name of the current context, and deletes nothing.
func (s *scene) rejects(allow, current string, files ...string) {
	err := s.run(allow, files)
	if err == nil {
		s.b.Fatalf("the current context is %q, %q is allowed, and the tool returned no error", current, allow)
	}
	s.nothingSent()
	if s.deleted() {
		s.b.Fatalf("the tool returned an error, and yet it has deleted the namespace")
	}
	if allow != "" && !strings.Contains(err.Error(), current) {
		s.b.Fatalf("the current context is %q, and the error does not say so: %v", current, err)
	}
}

// nothingSent asserts that production has got no request.
func (s *scene) nothingSent() {
	if sent := s.production.first(); sent != "" {
		s.b.Fatalf("production got a request: %s", sent)
	}
}
