// Package acquit is exercise 12a: the controller of 2022, and which lines of it were wrong.
package acquit

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/operator"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader repairs.
type Entry = operator.Setup

const patience = 5 * time.Second

// rounds is how often a controller may still write when nothing changes any more: its cache may be behind.
const rounds = 10

// Check compares the lines, and runs the controller.
func Check(t *check.T, work check.Work[Entry]) {
	t.Behaviour("at most 5 lines are changed, and no RBAC marker and no Owns", func(b *check.B) { compare(b, work.Dir) })
	ok := t.Behaviour("a Lolcow gets a Deployment with its greeting, and a Service", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
	})
	if !ok {
		return
	}
	t.Behaviour("a new greeting arrives in the Deployment", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
		s.change("cow", "Baa")
		s.expect("cow", "Baa")
	})
	t.Behaviour("when nothing changes any more, a reconciliation sends no write", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
		if sent := s.settle(); sent != "" {
			b.Fatalf("nothing has changed, and each reconciliation sends: %s", sent)
		}
	})
	t.Behaviour("when nothing changes any more, a reconciliation does not fail", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
		s.settle()
		before := len(s.log.Failures())
		s.Reconcile(s.request("cow"))
		if after := s.log.Failures(); len(after) > before {
			b.Fatalf("nothing has changed, and the log has an error: %s", after[len(after)-1].Error)
		}
	})
	t.Behaviour("each of two Lolcows has a Deployment with its own greeting, and a Service", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
		s.create("calf", "Mew")
		s.expect("calf", "Mew")
		s.change("calf", "Baa")
		s.expect("calf", "Baa")
		s.expect("cow", "Moo")
	})
	t.Behaviour("a Deployment or a Service that was deleted comes back with the next reconciliation", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.create("cow", "Moo")
		s.expect("cow", "Moo")
		for _, dependent := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
			s.settle()
			s.remove(dependent)
			b.Eventually(patience, func() string {
				s.Reconcile(s.request("cow"))
				return s.lacks("cow", "Moo")
			})
		}
	})
}

// settle reconciles cow until nothing is written, and returns what the last reconciliation wrote.
func (s *scene) settle() string {
	var sent string
	for range rounds {
		if sent = s.Reconcile(s.request("cow")); sent == "" {
			break
		}
	}
	return sent
}

// expect waits until a Lolcow has what it should have.
func (s *scene) expect(name, greeting string) {
	s.b.Eventually(patience, func() string { return s.lacks(name, greeting) })
}

// lacks says what a Lolcow does not have, or returns an empty string.
func (s *scene) lacks(name, greeting string) string {
	time.Sleep(10 * time.Millisecond) // many checks may share the API server
	deployments, services := s.dependents(name)
	switch {
	case len(deployments) == 0:
		return name + " has no Deployment that it controls"
	case !says(deployments[0], greeting):
		return fmt.Sprintf("the Deployment of %s does not have the greeting %s", name, greeting)
	case services == 0:
		return name + " has no Service that it controls"
	}
	return ""
}

func says(deployment appsv1.Deployment, greeting string) bool {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, greeting) {
			return true
		}
	}
	return false
}
