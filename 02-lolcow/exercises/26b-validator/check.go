// Package validator is exercise 26b: rules in CEL for one object, and a webhook for what needs two.
package validator

import (
	"fmt"
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
		s.accepted("page in the middle", s.create("three", "api", "page", "admin"))
		s.accepted("an empty list of ports", s.patch("one", `{"spec":{"ports":[]}}`))
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
		s.rejected("the ports api and admin", s.create("cow", "api", "admin"))
		s.accepted("the port page", s.create("cow", "page"))
		s.rejected("an update that renames page", s.update("cow", port("pages", s.number(0))))
	})
	t.Behaviour("two ports with one number are rejected, by a message about spec.ports", func(b *check.B) {
		s := newScene(b)
		twice := []v1beta1.LolcowPort{port("page", s.number(0)), port("api", s.number(1)), port("admin", s.number(1))}
		s.rejected("two ports with one number", s.createWith("cow", twice...))
		s.accepted("the port page", s.create("cow", "page"))
		s.rejected("an update to two ports with one number", s.update("cow", twice...))
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
		s.rejected("an update from one port that is not page to another", s.update("other", port("admin", s.number(0))))
	})
}

// clashes checks what the webhook denies.
func clashes(t *check.T, w *webhook, entry Entry) {
	t.Behaviour("a port that another Lolcow has is rejected: the message has the field, and the other", func(b *check.B) {
		s := w.scene(b, entry)
		s.accepted("ports that are free", s.create("cow", "page", "api"))
		page, api := port("page", s.number(2)), port("api", s.number(1))
		s.clashes("the page of another Lolcow", s.createWith("calf", port("page", s.number(0))), 0, s.key("cow"), 0)
		s.clashes("the page of another Lolcow as the last port",
			s.createWith("calf", page, port("metrics", s.number(3)), port("admin", s.number(0))), 2, s.key("cow"), 0)
		s.clashes("the port api of another Lolcow", s.createWith("calf", page, api), 1, s.key("cow"), 1)
	})
	t.Behaviour("that is so in all namespaces, whatever the names are", func(b *check.B) {
		s, elsewhere := w.scene(b, entry), newScene(b)
		s.accepted("a port that is free", s.create("cow", "page"))
		for _, name := range []string{"calf", "cow"} {
			elsewhere.clashes("the port of a Lolcow in another namespace",
				elsewhere.createWith(name, port("page", s.number(0))), 0, s.key("cow"), 0)
		}
	})
	t.Behaviour("it is so for updates, too", func(b *check.B) {
		s := w.scene(b, entry)
		s.accepted("a port that is free", s.create("cow", "page"))
		s.accepted("a port that is free", s.createWith("calf", port("page", s.number(1))))
		s.clashes("a new port that another Lolcow has", s.update("calf", port("page", s.number(1)), port("api", s.number(0))), 1, s.key("cow"), 0)
		s.clashes("a new number that another Lolcow has", s.update("calf", port("page", s.number(0))), 0, s.key("cow"), 0)
		s.accepted("ports that are free", s.update("calf", port("page", s.number(2)), port("api", s.number(1))))
		s.accepted("another name for a port that it has", s.update("calf", port("page", s.number(2)), port("admin", s.number(1))))
	})
	t.Behaviour("also if the other is being deleted, or is one of many", func(b *check.B) {
		s := w.scene(b, entry)
		for i := range last + 1 {
			s.accepted("a port that is free", s.createWith(fmt.Sprintf("cow-%d", i), port("page", s.number(i))))
		}
		s.clashes("the page of one of many Lolcows",
			s.createWith("calf", port("page", s.number(last))), 0, s.key(fmt.Sprintf("cow-%d", last)), 0)
		s.delete("cow-0")
		s.clashes("the page of a Lolcow that is being deleted", s.createWith("calf", port("page", s.number(0))), 0, s.key("cow-0"), 0)
	})
}

// older checks what the webhook allows to Lolcows that clash since before there was a webhook, also while Lolcows cannot be listed.
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
		s.clashes("a number of another Lolcow, for the other one",
			s.update("calf", port("page", s.number(1)), port("api", s.number(2))), 0, s.key("cow"), 1)
	})
	t.Behaviour("it can be deleted, and its finalizer removed", func(b *check.B) {
		s := w.scene(b, entry)
		s.clash()
		s.finalizes("calf")
	})
	t.Behaviour("if the Lolcows cannot be listed, a new port is not allowed; all that needs no list is", func(b *check.B) {
		s := w.scene(b, entry)
		s.clash()
		s.wire.Fail(1000, func(request kube.Request) bool { return request.Resource == "lolcows" })
		if err := s.create("bull", "page"); err == nil {
			s.b.Fatalf("the webhook could not list Lolcows, and allowed a port that may be another's")
		}
		s.edits("calf")
		s.finalizes("calf")
	})
}

// accepted asserts that a request was.
func (s *scene) accepted(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: this is valid, and is rejected: %v", what, err)
	}
}

// rejected asserts that a request was, by a message of the reader's that has spec.ports and these parts.
func (s *scene) rejected(what string, err error, parts ...string) {
	switch {
	case err == nil:
		s.b.Fatalf("%s: this is accepted", what)
	case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
		s.b.Fatalf("%s: this is rejected as %s, and not as Invalid or Forbidden: %v", what, apierrors.ReasonForError(err), err)
	}
	for _, part := range append(parts, "spec.ports") {
		if !strings.Contains(err.Error(), part) {
			s.b.Fatalf("%s: the message does not have %s: %v", what, part, err)
		}
	}
	if strings.Contains(err.Error(), "failed rule:") {
		s.b.Fatalf("%s: the message is the rule, which is no text for users: %v", what, err)
	}
}

// clashes asserts that a request was rejected because port i is port j of another Lolcow, namespace/name. A message may also
// name that, and no third one.
func (s *scene) clashes(what string, err error, i int, other string, j int) {
	field := func(i int) string { return fmt.Sprintf("spec.ports[%d]", i) }
	s.rejected(what, err, field(i)+".port", other)
	if rest := strings.NewReplacer(field(i), "", field(j), "").Replace(err.Error()); strings.Contains(rest, "spec.ports[") {
		s.b.Fatalf("%s: the message names other fields than %s.port: %v", what, field(i), err)
	}
}
