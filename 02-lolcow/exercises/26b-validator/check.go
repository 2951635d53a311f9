// Package validator is exercise 26b: rules in CEL for one object, and a webhook for what needs two.
package validator

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes, besides crd.yaml.
type Entry func(c client.Client) admission.Handler

// Check first asks the API server alone, with the rules of crd.yaml, and then with the webhook.
func Check(t *check.T, work check.Work[Entry]) {
	old := &stored{}
	ok := t.Behaviour("the API server accepts crd.yaml, and valid Lolcows", func(b *check.B) {
		old.install(b, work.Dir)
		s := newScene(b)
		s.accepted("no ports", s.create("none"))
		s.accepted("the port page alone", s.create("one", "page"))
		s.accepted("page as the last of four ports", s.create("four", "api", "admin", "metrics", "page"))
	})
	if !ok {
		return
	}
	rules(t, old)
	w := &webhook{}
	if t.Behaviour("the API server calls the webhook", func(b *check.B) { w.install(b) }) {
		clashes(t, w, work.Entry)
		older(t, w, work.Entry)
	}
}

// rules checks what the API server decides alone.
func rules(t *check.T, old *stored) {
	t.Behaviour("ports without one named page are rejected, by a message about spec.ports", func(b *check.B) {
		s := newScene(b)
		s.rejected("the ports api and admin", s.create("cow", "api", "admin"), "spec.ports")
		s.accepted("the port page", s.create("cow", "page"))
		s.rejected("an update that renames page", s.update("cow", port("pages", s.number(0))), "spec.ports")
	})
	t.Behaviour("two ports with one number are rejected, by a message about spec.ports", func(b *check.B) {
		s := newScene(b)
		twice := []v1beta1.LolcowPort{port("page", s.number(0)), port("api", s.number(1)), port("admin", s.number(1))}
		s.rejected("two ports with one number", s.createWith("cow", twice...), "spec.ports")
		s.accepted("the port page", s.create("cow", "page"))
		s.rejected("an update to two ports with one number", s.update("cow", twice...), "spec.ports")
	})
	t.Behaviour("a Lolcow from before the rules can be edited where its ports stay, and deleted", func(b *check.B) {
		s := old.scene(b)
		for _, name := range []string{"nameless", "twice"} {
			s.edits(name)
			s.finalizes(name)
		}
	})
	t.Behaviour("but it cannot get other ports that break a rule", func(b *check.B) {
		s := old.scene(b)
		s.rejected("an update from one port that is not page to another", s.update("other", port("admin", s.number(0))), "spec.ports")
	})
}

// clashes checks what the webhook denies.
func clashes(t *check.T, w *webhook, entry Entry) {
	t.Behaviour("a port that another Lolcow has is rejected: the message has the field, and the other", func(b *check.B) {
		s := w.scene(b, entry)
		s.accepted("a port that is free", s.create("cow", "page"))
		s.rejected("the page of another Lolcow", s.createWith("calf", port("page", s.number(0))), "spec.ports[0].port", s.namespace+"/cow")
		s.rejected("the page of another Lolcow as the port api", s.createWith("calf", port("page", s.number(1)), port("api", s.number(0))),
			"spec.ports[1].port", s.namespace+"/cow")
	})
	t.Behaviour("that is so in all namespaces, whatever the names are", func(b *check.B) {
		s, elsewhere := w.scene(b, entry), newScene(b)
		s.accepted("a port that is free", s.create("cow", "page"))
		for _, name := range []string{"calf", "cow"} {
			elsewhere.rejected("the port of a Lolcow in another namespace", elsewhere.createWith(name, port("page", s.number(0))),
				"spec.ports[0].port", s.namespace+"/cow")
		}
	})
	t.Behaviour("it is so for updates, too", func(b *check.B) {
		s := w.scene(b, entry)
		s.accepted("a port that is free", s.create("cow", "page"))
		s.accepted("a port that is free", s.createWith("calf", port("page", s.number(1))))
		s.rejected("a new port that another Lolcow has", s.update("calf", port("page", s.number(1)), port("api", s.number(0))),
			"spec.ports[1].port", s.namespace+"/cow")
		s.rejected("a new number that another Lolcow has", s.update("calf", port("page", s.number(0))),
			"spec.ports[0].port", s.namespace+"/cow")
		s.accepted("ports that are free", s.update("calf", port("page", s.number(2)), port("api", s.number(1))))
	})
	t.Behaviour("if the Lolcows cannot be listed, a new port is not allowed", func(b *check.B) {
		s := w.scene(b, entry)
		s.wire.Fail(1000, func(kube.Request) bool { return true })
		if err := s.create("cow", "page"); err == nil {
			s.b.Fatalf("the webhook could not list Lolcows, and allowed a port that may be another's")
		}
	})
}

// older checks what the webhook allows to Lolcows that clash since before there was a webhook.
func older(t *check.T, w *webhook, entry Entry) {
	t.Behaviour("a Lolcow that has clashed before can be edited", func(b *check.B) {
		s := w.scene(b, entry)
		s.clash()
		s.edits("calf")
		s.accepted("the same ports in another order", s.update("calf", port("api", s.number(1)), port("page", s.number(0))))
	})
	t.Behaviour("of two ports that have clashed before, one can be corrected", func(b *check.B) {
		s := w.scene(b, entry)
		s.clash()
		s.accepted("a free number for one of two ports that clash", s.update("calf", port("page", s.number(0)), port("api", s.number(2))))
		s.rejected("a number of another Lolcow, for the other one", s.update("calf", port("page", s.number(1)), port("api", s.number(2))),
			"spec.ports[0].port", s.namespace+"/cow")
	})
	t.Behaviour("it can be deleted, and its finalizer removed", func(b *check.B) {
		s := w.scene(b, entry)
		s.clash()
		s.finalizes("calf")
	})
}

// accepted asserts that a request was.
func (s *scene) accepted(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: this is valid, and is rejected: %v", what, err)
	}
}

// rejected asserts that a request was, by a message of the reader's that has these parts.
func (s *scene) rejected(what string, err error, parts ...string) {
	switch {
	case err == nil:
		s.b.Fatalf("%s: this is accepted", what)
	case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
		s.b.Fatalf("%s: this is rejected as %s, and not as Invalid or Forbidden: %v", what, apierrors.ReasonForError(err), err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			s.b.Fatalf("%s: the message does not have %s: %v", what, part, err)
		}
	}
	if text, field := err.Error(), parts[0]; strings.Count(text, "spec.ports[") > strings.Count(text, field) {
		s.b.Fatalf("%s: the message names other fields than %s: %v", what, field, err)
	}
	if strings.Contains(err.Error(), "failed rule:") {
		s.b.Fatalf("%s: the message is the rule, which is no text for users: %v", what, err)
	}
}
