// Package mirror is the capstone of stage 1: a whole controller with client-go alone.
package mirror

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, source types.NamespacedName, targets labels.Selector, verify <-chan time.Time) error

// patience is also for requests that fail some times, with a pause after each that is twice as long as the last.
const patience = 20 * time.Second

// Check plays users and faults, and looks at the Secrets.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("each selected namespace has a copy, and no other namespace has one", func(b *check.B) {
		c := newCluster(b, work.Entry)
		c.targets("a", "b")
		c.namespace("other", nil)
		c.label(c.source.Namespace, true)
		c.createSource("one", nil)
		c.run()
		c.expect("one", "a", "b")
		c.marks("a")
		c.stop()
	})
	ok = ok && t.Behaviour("a change of the source arrives", func(b *check.B) {
		c := started(b, work.Entry)
		c.setSource("two")
		c.expect("two", "a", "b")
	})
	if !ok {
		return
	}
	for _, behaviours := range []func(*check.T, Entry){
		follows, empties, others, marked, checkRaces, rests, faults,
	} {
		behaviours(t, work.Entry)
	}
}

// started is a cluster with two copies, and a Run.
func started(b *check.B, entry Entry) *cluster {
	c := newCluster(b, entry)
	c.targets("a", "b")
	c.createSource("one", nil)
	c.run()
	c.expect("one", "a", "b")
	return c
}

// follows checks what users may do.
func follows(t *check.T, entry Entry) {
	t.Behaviour("a new namespace gets a copy, and so does one that is selected later", func(b *check.B) {
		c := started(b, entry)
		c.namespace("later", nil)
		c.targets("new")
		c.label("later", true)
		c.expect("one", "a", "b", "new", "later")
	})
	t.Behaviour("a namespace that is not selected any more loses its copy", func(b *check.B) {
		c := started(b, entry)
		c.label("b", false)
		c.expect("one", "a")
	})
	t.Behaviour("without the source there is no copy, and a new source is copied", func(b *check.B) {
		c := started(b, entry)
		c.deleteSource()
		c.expect("")
		c.createSource("two", nil)
		c.expect("two", "a", "b")
	})
	t.Behaviour("a copy that a user changes is corrected, and what is beside the data stays", func(b *check.B) {
		c := started(b, entry)
		c.change("a", func(secret *corev1.Secret) { secret.Data["more"] = []byte("data") })
		c.expect("one", "a", "b")
		c.change("a", func(secret *corev1.Secret) {
			secret.Data = map[string][]byte{"word": []byte("changed"), "more": []byte("data")}
			secret.Labels["team"], secret.Annotations["note"] = "red", "mine"
		})
		c.expect("one", "a", "b")
		c.setSource("two")
		c.expect("two", "a", "b")
		if live := c.secret("a"); live.Labels["team"] != "red" || live.Annotations["note"] != "mine" {
			b.Fatalf("the label and the annotation that the user has written to the copy are lost")
		}
	})
	t.Behaviour("a copy that a user deletes is created again", func(b *check.B) {
		c := started(b, entry)
		c.remove("a")
		c.expect("one", "a", "b")
	})
	t.Behaviour("a copy is replaced where its type has to change, or its data, which are immutable", func(b *check.B) {
		c := started(b, entry)
		// While it runs, it could see that the source is gone for a moment, and would only have to create copies.
		anew := func(word string) {
			c.stop()
			c.deleteSource()
			c.createSource(word, func(secret *corev1.Secret) { secret.Type, secret.Immutable = "example.com/word", new(true) })
			c.run()
			c.expect(word, "a", "b")
			c.expectKind("a", "example.com/word", true)
		}
		anew("two")
		anew("three")
	})
	t.Behaviour("a copy is immutable if the source is, and only then", func(b *check.B) {
		c := started(b, entry)
		c.change("a", func(secret *corev1.Secret) { secret.Immutable = new(true) })
		c.expectKind("a", corev1.SecretTypeOpaque, false)
		c.update(c.source.Namespace, func(secret *corev1.Secret) { secret.Immutable = new(true) })
		c.expectKind("a", corev1.SecretTypeOpaque, true)
		c.expect("one", "a", "b")
	})
	t.Behaviour("a namespace that is being deleted holds up no other", func(b *check.B) {
		c := newCluster(b, entry)
		c.targets("0-gone", "a", "b")
		c.terminate("0-gone")
		c.createSource("one", nil)
		c.run()
		c.expect("one", "a", "b")
		c.setSource("two")
		c.expect("two", "a", "b")
	})
}

// empties checks that no data is data, too.
func empties(t *check.T, entry Entry) {
	t.Behaviour("a source without data has copies without data", func(b *check.B) {
		c := started(b, entry)
		c.update(c.source.Namespace, func(secret *corev1.Secret) { secret.Data = nil })
		c.expectData("", "a", "b")
		c.targets("new")
		c.expectData("", "a", "b", "new")
		c.setSource("two")
		c.expect("two", "a", "b", "new")
	})
}

// others checks that what is not the mirror's is left alone.
func others(t *check.T, entry Entry) {
	t.Behaviour("a Secret of the name that is no copy is left alone, and the others get theirs", func(b *check.B) {
		c := newCluster(b, entry)
		c.targets("a", "b", "c", "d")
		c.leaveAlone("b", c.another("b", nil, nil))
		c.leaveAlone("c", c.another("c", map[string]string{copyLabel: "true"}, map[string]string{sourceAnnotation: "another/secret"}))
		c.leaveAlone("d", c.another("d", map[string]string{copyLabel: "false"}, map[string]string{sourceAnnotation: c.source.String()}))
		c.createSource("one", nil)
		c.run()
		c.expect("one", "a")
		c.twice("a")
		c.verifyAll()
		c.label("c", false)
		c.deleteSource()
		c.expect("")
		c.stop()
		c.untouched()
	})
	t.Behaviour("when such a Secret is deleted, the namespace gets its copy", func(b *check.B) {
		c := newCluster(b, entry)
		c.targets("a", "b")
		c.leaveAlone("b", c.another("b", nil, nil))
		c.createSource("one", nil)
		c.run()
		c.expect("one", "a")
		c.twice("a")
		c.untouched()
		c.remove("b")
		c.verifyAll()
		c.expect("three", "a", "b")
	})
}

// marked checks that the label and the annotation alone make no copy.
func marked(t *check.T, entry Entry) {
	t.Behaviour("a source that is marked as a copy stays as it is", func(b *check.B) {
		c := started(b, entry)
		b.Event("a user gives the source the label and the annotation of a copy")
		c.update(c.source.Namespace, func(secret *corev1.Secret) {
			secret.Labels, secret.Annotations = c.marksOfCopies()
		})
		c.leaveAlone(c.source.Namespace, c.secret(c.source.Namespace).ResourceVersion)
		c.targets("new")
		c.expect("one", "a", "b", "new")
		c.verifyAll()
		c.targets("last")
		c.expect("one", "a", "b", "new", "last")
	})
	t.Behaviour("a Secret of another name that is marked as a copy stays as it is", func(b *check.B) {
		c := started(b, entry)
		c.namespace("other", nil)
		untouched := []func() string{c.markedOther("b"), c.markedOther("other")}
		c.twice("a", "b")
		c.label("b", false)
		c.expect("three", "a")
		c.verifyAll()
		c.stop()
		for _, text := range untouched {
			if why := text(); why != "" {
				b.Fatalf("a Secret of another name has the label and the annotation of a copy, and was %s", why)
			}
		}
	})
}

// checkRaces checks that a write is bound to what was read before it.
func checkRaces(t *check.T, entry Entry) {
	race := func(name string, writes func(kube.Request) bool, take func(c *cluster) string, act func(c *cluster)) {
		t.Behaviour(name, func(b *check.B) {
			c := newCluster(b, entry)
			c.targets("a", "b")
			c.createSource("one", nil)
			taken := c.justBefore("b", writes, take)
			c.run()
			act(c)
			b.Eventually(patience, func() string {
				if taken() == "" {
					return "nothing was written in b"
				}
				return ""
			})
			c.leaveAlone("b", taken())
			c.twice("a")
			c.stop()
			c.untouched()
		})
	}
	race("a Secret that takes the name just before a copy is created is left alone", kube.Writes, takesTheName, func(*cluster) {})
	race("a Secret that takes the name just before a copy is changed is left alone", onCopies, takesTheName, func(c *cluster) {
		c.expect("one", "a", "b")
		c.setSource("changed")
	})
	deselect := func(c *cluster) {
		c.expect("one", "a", "b")
		c.label("b", false)
	}
	race("a Secret that takes the name just before a copy is deleted is left alone", onCopies, takesTheName, deselect)
	race("a copy that loses its label just before it is deleted is left alone", onCopies, losesItsLabel, deselect)
}

// onCopies are writes to a copy that is there.
func onCopies(r kube.Request) bool { return kube.Writes(r) && r.Verb != "create" }
