// Package stalecrd is exercise 12c: an operator that notices at its start that the CRD is too old.
package stalecrd

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, config *rest.Config) error

// patience is for the API server, which serves a changed schema a moment later, and its documents later still.
const patience = 30 * time.Second

// Check installs CRDs of several ages.
func Check(t *check.T, work check.Work[Entry]) {
	t.Behaviour("without the CRD it returns an error", func(b *check.B) {
		s := newScene(b, work)
		s.expectError("")
	})
	t.Behaviour("with the current CRD it returns nil, and after an update of a stale one, too", func(b *check.B) {
		s := newScene(b, work)
		s.install(s.crd)
		s.expectNil()
		s.install(withoutPort(s.crd, "spec"))
		_ = s.call()
		s.install(s.crd)
		s.expectNil()
	})
	t.Behaviour("with a CRD of before the port it returns an error that names the port", func(b *check.B) {
		s := newScene(b, work)
		s.install(withoutPort(s.crd, "spec", "status"))
		s.expectError("port")
	})
	t.Behaviour("the port of the status does not help", func(b *check.B) {
		s := newScene(b, work)
		s.install(withoutPort(s.crd, "spec"))
		s.expectError("port")
	})
	t.Behaviour("nor does the port of another version", func(b *check.B) {
		s := newScene(b, work)
		s.install(withNewer(withoutPort(s.crd, "spec"), s.crd))
		s.expectError("port")
	})
	t.Behaviour("nor does the port of a version that is not served", func(b *check.B) {
		s := newScene(b, work)
		s.install(notServed(withNewer(s.crd, s.crd)))
		s.expectError("")
	})
	t.Behaviour("nor does a CRD that is not served, because another one has its short name", func(b *check.B) {
		s := newScene(b, work)
		s.installInVain()
		s.expectError("")
	})
	t.Behaviour("if the API server cannot be reached, it returns an error", func(b *check.B) {
		s := newScene(b, work)
		s.install(s.crd)
		s.wire.Fail(1000, func(kube.Request) bool { return true })
		s.expectError("")
	})
	t.Behaviour("if it may not ask, it returns an error", func(b *check.B) {
		s := newScene(b, work)
		s.install(withoutPort(s.crd, "spec"))
		s.wire.Before(func(_ kube.Request, r *http.Request) (*http.Response, error) {
			return kube.Failure(r, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the operator lacks the permission"))), nil
		})
		s.expectError("")
	})
	t.Behaviour("it leaves no object in the cluster", func(b *check.B) {
		s := newScene(b, work)
		s.install(s.crd)
		_ = s.call() // the error is another behaviour's
		s.expectEmpty("the current CRD")
		s.install(withoutPort(s.crd, "spec"))
		_ = s.call()
		s.expectEmpty("a CRD of before the port")
	})
}

func (s *scene) call() error {
	s.b.Event("CheckSchema is called")
	err := s.entry(s.b.Context(), s.wire.Config())
	s.b.Event("  it returned: %v", err)
	return err
}

func (s *scene) expectNil() {
	if err := s.call(); err != nil {
		s.b.Fatalf("the API server serves Lolcows with a port, and CheckSchema returned an error: %v", err)
	}
}

// expectError asserts that it returns an error that has a word.
func (s *scene) expectError(word string) {
	err := s.call()
	if err == nil {
		s.b.Fatalf("CheckSchema returned no error")
	}
	if !regexp.MustCompile(`\b` + word + `\b`).MatchString(err.Error()) {
		s.b.Fatalf("the error does not name the %s: %v", word, err)
	}
}
