package nononce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	letterName = "letter"
	textKey    = "text"
	text       = "Moo"
	// most is how many calls one letter may need.
	most = 10
)

var errCrash = errors.New("the controller crashes")

// letter is a ConfigMap, its controller, and the post office.
type letter struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface
	reader typedcorev1.ConfigMapInterface

	// ends the process that is running.
	ctx   context.Context
	crash context.CancelFunc

	// What the post office does, and has done. What inCall is set to happens during the next call.
	responses   []error
	crashInCall bool
	inCall      func()
	mu          sync.Mutex
	sends       int

	crashed bool
}

func newLetter(b *check.B, entry Entry) *letter {
	namespace := kube.Namespace(b)
	l := &letter{b: b, entry: entry, wire: kube.NewWire(b)}
	l.client = kube.Client(b).CoreV1().ConfigMaps(namespace)
	l.reader = l.wire.Client().CoreV1().ConfigMaps(namespace)
	b.Event("a user writes a letter")
	_, err := l.client.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: letterName}, Data: map[string]string{textKey: text},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a ConfigMap: %v", err)
	}
	return l
}

// Send is that of the post office.
func (l *letter) Send(ctx context.Context, got string) error {
	if l.ctx.Err() != nil {
		return l.ctx.Err() // a process that has crashed sends nothing
	}
	if got != text {
		l.b.Errorf("the letter is %q, and the post office has got %q", text, got)
	}
	l.mu.Lock()
	l.sends++
	inCall := l.inCall
	l.inCall = nil
	l.mu.Unlock()
	l.b.Event("  the post office gets the letter %q", got)
	if inCall != nil {
		inCall()
	}
	if l.crashInCall {
		l.crashInCall = false
		l.crashNow()
		return ctx.Err()
	}
	if len(l.responses) == 0 {
		return nil
	}
	response := l.responses[0]
	l.responses = l.responses[1:]
	return response
}

// crashNow ends the process: no request of it takes effect any more.
func (l *letter) crashNow() {
	l.b.Event("  the controller crashes")
	l.crashed = true
	l.crash()
}

// crashAt lets the process crash at the write with this number, before it has taken effect or after.
func (l *letter) crashAt(number int, after bool) {
	direct, err := rest.TransportFor(kube.Config(l.b))
	if err != nil {
		l.b.Fatalf("making a transport: %v", err)
	}
	writes := 0
	l.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if l.ctx.Err() != nil {
			return nil, errCrash
		}
		if kube.Writes(request) {
			writes++
		}
		if l.crashed || writes != number || !kube.Writes(request) {
			return nil, nil
		}
		if after {
			response, err := direct.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			response.Body.Close()
			l.b.Event("  it takes effect")
		}
		l.crashNow()
		return nil, errCrash
	})
}

// beforeTheFirstWrite does something between the controller's first read and its first write.
func (l *letter) beforeTheFirstWrite(f func()) {
	var once sync.Once
	l.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Writes(request) {
			once.Do(f)
		}
		return nil, nil
	})
}

// otherReplica calls Reconcile in another process.
func (l *letter) otherReplica() {
	l.b.Event("  another replica reconciles the letter")
	err := l.entry(l.b.Context(), l.client, l, letterName)
	l.b.Event("  the other replica returned the error: %v", err)
}

// otherReplicaInCall is otherReplica, in a goroutine, as far as its call of the post office, which responds when proceed is closed.
// The channel that it returns is closed at its end.
func (l *letter) otherReplicaInCall(proceed <-chan struct{}) chan struct{} {
	calling, done := make(chan struct{}), make(chan struct{})
	l.mu.Lock()
	l.inCall = func() {
		close(calling)
		<-proceed
	}
	l.mu.Unlock()
	go func() {
		defer close(done)
		l.otherReplica()
	}()
	select {
	case <-calling:
	case <-done:
	}
	return done
}

// readsOld lets the controller read the letter as it was, whatever has been written since.
func (l *letter) readsOld(object *corev1.ConfigMap) {
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	old, err := json.Marshal(object)
	if err != nil {
		l.b.Fatalf("encoding the letter: %v", err)
	}
	l.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if request.Verb != "get" {
			return nil, nil
		}
		l.b.Event("  it reads an old object")
		return kube.Response(r, bytes.NewReader(old)), nil
	})
}

func (l *letter) readsNew() { l.wire.Before(nil) }

// call starts the controller and calls Reconcile once. It returns its error.
func (l *letter) call() error {
	l.ctx, l.crash = context.WithCancel(l.b.Context())
	defer l.crash()
	l.b.Event("Reconcile")
	err := l.entry(l.ctx, l.reader, l, letterName)
	if err != nil {
		l.b.Event("  it returned the error: %v", err)
	}
	return err
}

// try calls Reconcile. Whether it returns an error does not matter.
func (l *letter) try() { _ = l.call() }

// settle calls Reconcile until it changes nothing and returns no error.
func (l *letter) settle() {
	for range most {
		before := l.version()
		if err := l.call(); err == nil && before == l.version() {
			return
		}
	}
	l.b.Fatalf("after %d calls there is still no end: the state is %q, and the post office has got %d letters", most, l.state(), l.count())
}

func (l *letter) get() *corev1.ConfigMap {
	object, err := l.client.Get(l.b.Context(), letterName, metav1.GetOptions{})
	if err != nil {
		l.b.Fatalf("reading the letter: %v", err)
	}
	return object
}

// count is how often the post office has got the letter.
func (l *letter) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sends
}

func (l *letter) state() string   { return l.get().Data["state"] }
func (l *letter) version() string { return l.get().ResourceVersion }

func (l *letter) atMostOnce() {
	if count := l.count(); count > 1 {
		l.b.Fatalf("the post office has got the letter %d times", count)
	}
}

// expect checks that the post office has got the letter once, and the state.
func (l *letter) expect(want string) {
	object := l.get()
	state := object.Data["state"]
	switch {
	case l.count() != 1:
		l.b.Fatalf("the post office has got the letter %d times, and the state is %q", l.count(), state)
	case state != want:
		l.b.Fatalf("the state is %q, and should be %q", state, want)
	case object.Data[textKey] != text:
		l.b.Fatalf("data.%s, which the user has written, is lost", textKey)
	}
}
