// Package nononce is exercise 19c: at most one call of a service that knows no nonce.
package nononce

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/03-flux/exercises/internal/post"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client typedcorev1.ConfigMapInterface, office post.Office, name string) error

const (
	sent     = "Sent"
	rejected = "Rejected"
	unknown  = "Unknown"
)

var errTimeout = errors.New("the post office does not respond: timeout")

// Check reconciles letters, with an office of its own for each.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a letter is sent", func(b *check.B) {
		l := newLetter(b, work.Entry)
		l.settle()
		l.expect(sent)
	})
	t.Behaviour("a letter that the post office rejects is Rejected, and not tried again", func(b *check.B) {
		l := newLetter(b, work.Entry)
		l.responses = []error{post.ErrRejected}
		l.settle()
		l.expect(rejected)
	})
	t.Behaviour("after a timeout the state is Unknown, and the letter is not sent again", func(b *check.B) {
		l := newLetter(b, work.Entry)
		l.responses = []error{errTimeout}
		l.settle()
		l.expect(unknown)
	})
	if !ok {
		return
	}
	t.Behaviour("it sends a letter at most once, at whichever request it crashes", func(b *check.B) {
		crashes(b, work.Entry, func(l *letter) { l.atMostOnce() })
	})
	t.Behaviour("after a crash the state says what is known", func(b *check.B) {
		crashes(b, work.Entry, func(l *letter) {
			switch state := l.state(); {
			case state == unknown || state == sent && l.count() == 1:
			case state == sent:
				b.Fatalf("the state is Sent, and the post office has got no letter")
			default:
				b.Fatalf("nothing more is done, and the state is %q", state)
			}
		})
	})
	t.Behaviour("a crash during the call leaves Unknown", func(b *check.B) {
		l := newLetter(b, work.Entry)
		l.crashInCall = true
		l.settle()
		l.expect(unknown)
	})
	t.Behaviour("if nothing could be written before the letter is sent, it is sent later", func(b *check.B) {
		for _, kind := range []func(kube.Request) bool{kube.Reads, kube.Writes} {
			l := newLetter(b, work.Entry)
			l.wire.Fail(1, kind)
			l.settle()
			l.expect(sent)
		}
	})
	t.Behaviour("if a write fails, it returns an error, or has recorded an end", func(b *check.B) {
		for number, writes := 1, 0; writes == number-1; number++ {
			l := newLetter(b, work.Entry)
			writes = 0
			l.wire.Fail(1, func(request kube.Request) bool {
				if kube.Writes(request) {
					writes++
				}
				return writes == number
			})
			if err := l.call(); err == nil && !slices.Contains([]string{sent, unknown}, l.state()) {
				b.Fatalf("a write has failed, Reconcile returned no error, so that nothing calls it again, and the state is %q", l.state())
			}
		}
	})
	t.Behaviour("an old object that it reads does no harm", func(b *check.B) {
		l := newLetter(b, work.Entry)
		l.readsOld(l.get())
		l.try()
		l.try()
		l.readsNew()
		l.settle()
		l.atMostOnce()
	})
	t.Behaviour("an end that was recorded stays, whatever is read", func(b *check.B) {
		l := newLetter(b, work.Entry)
		var during *corev1.ConfigMap
		l.inCall = func() { during = l.get() }
		l.settle()
		l.readsOld(during)
		l.try()
		l.readsNew()
		l.expect(sent)
	})
	checkReplicas(t, work.Entry)
	t.Behaviour("what is at its end is left as it is", func(b *check.B) {
		for _, response := range []error{nil, post.ErrRejected, errTimeout} {
			l := newLetter(b, work.Entry)
			l.responses = []error{response}
			l.settle()
			seen := len(l.wire.Requests())
			l.try()
			for _, request := range l.wire.Requests()[seen:] {
				if kube.Writes(request) {
					b.Fatalf("the letter is %s, and this was sent: %s", l.state(), request)
				}
			}
		}
	})
}

// checkReplicas lets another replica reconcile the letter at the same moment.
func checkReplicas(t *check.T, entry Entry) {
	t.Behaviour("a letter that another replica has just sent is not sent again", func(b *check.B) {
		l := newLetter(b, entry)
		l.beforeTheFirstWrite(l.otherReplica)
		l.settle()
		l.expect(sent)
	})
	t.Behaviour("a letter that another replica is about to send is not sent by this one", func(b *check.B) {
		l := newLetter(b, entry)
		proceed := make(chan struct{})
		other := proceed
		l.beforeTheFirstWrite(func() { other = l.otherReplicaInCall(proceed) })
		l.settle()
		close(proceed)
		<-other
		l.atMostOnce()
	})
}

// crashes lets the controller crash at each of its writes, before it has taken effect and after, until one run has no such write.
func crashes(b *check.B, entry Entry, assert func(*letter)) {
	for _, after := range []bool{false, true} {
		for number := 1; ; number++ {
			l := newLetter(b, entry)
			l.crashAt(number, after)
			l.settle()
			assert(l)
			if !l.crashed {
				break
			}
		}
	}
}
