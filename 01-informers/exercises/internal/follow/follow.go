// Package follow is what checks of chapters 05 and 06 have in common: a function of the reader's that follows the ConfigMaps of
// a namespace, with what it reported.
package follow

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Func is what the reader writes.
type Func func(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap)) error

// patience is for events that come within milliseconds, and after a request that failed within two seconds: a reflector waits
// that long.
const patience = 5 * time.Second

// Run is a namespace with the reader's function at work in it, and what that has reported.
type Run struct {
	b         *check.B
	Wire      *kube.Wire
	client    typedcorev1.ConfigMapInterface
	namespace string
	cancel    context.CancelFunc
	ended     <-chan struct{}

	// slow is how long each call of handle takes, and overlap is set if another one begins meanwhile.
	slow    time.Duration
	calls   atomic.Int32
	overlap atomic.Bool

	mu sync.Mutex
	// got has been reported since the last call of Expect, and past before.
	got, past []string
	// last are the objects of the last reports, by name.
	last map[string]*corev1.ConfigMap
	err  error
}

// Start creates the ConfigMaps, each with the value 1, and starts the reader's function.
func Start(b *check.B, f Func, names ...string) *Run { return StartSlow(b, f, 0, names...) }

// StartSlow is Start with a handle that takes some time.
func StartSlow(b *check.B, f Func, slow time.Duration, names ...string) *Run {
	r := &Run{b: b, Wire: kube.NewWire(b), namespace: kube.Namespace(b), slow: slow, last: map[string]*corev1.ConfigMap{}}
	r.client = kube.Client(b).CoreV1().ConfigMaps(r.namespace)
	for _, name := range names {
		r.Create(name)
	}
	ctx, cancel := context.WithCancel(b.Context())
	r.cancel = cancel
	client := r.Wire.Client()
	r.ended = b.Go(func() {
		err := f(ctx, client, r.namespace, r.handle)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
	})
	b.Cleanup(func() {
		// One that does not end by its context is another behaviour's to find.
		select {
		case <-r.ended:
		case <-time.After(time.Second):
		}
	})
	return r
}

func (r *Run) handle(event watch.EventType, object *corev1.ConfigMap) {
	text := fmt.Sprintf("%s %s=%s", event, object.Name, object.Data["value"])
	if event == watch.Deleted {
		text = fmt.Sprintf("%s %s", event, object.Name)
	}
	r.b.Event("  reported: %s", text)
	if r.calls.Add(1) > 1 {
		r.overlap.Store(true)
	}
	defer r.calls.Add(-1)
	<-time.After(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, text)
	r.last[object.Name] = object
}

// Last is the object of the last report about this name, or nil.
func (r *Run) Last(name string) *corev1.ConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[name]
}

// Create creates a ConfigMap with the value 1.
func (r *Run) Create(name string) {
	r.b.Event("the check creates %s=1", name)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": "1"}}
	if _, err := r.client.Create(r.b.Context(), object, metav1.CreateOptions{}); err != nil {
		r.b.Fatalf("creating a ConfigMap: %v", err)
	}
}

// Set changes the value of a ConfigMap.
func (r *Run) Set(name, value string) {
	r.b.Event("the check sets %s=%s", name, value)
	r.change(name, func(object *corev1.ConfigMap) { object.Data["value"] = value })
}

// Label changes a label of a ConfigMap, and not its value.
func (r *Run) Label(name string) {
	r.b.Event("the check sets a label of %s", name)
	r.change(name, func(object *corev1.ConfigMap) { object.Labels = map[string]string{"seen": "yes"} })
}

func (r *Run) change(name string, change func(object *corev1.ConfigMap)) {
	object, err := r.client.Get(r.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.b.Fatalf("reading a ConfigMap: %v", err)
	}
	change(object)
	if _, err := r.client.Update(r.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		r.b.Fatalf("changing a ConfigMap: %v", err)
	}
}

// Delete deletes a ConfigMap.
func (r *Run) Delete(name string) {
	r.b.Event("the check deletes %s", name)
	if err := r.client.Delete(r.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.b.Fatalf("deleting a ConfigMap: %v", err)
	}
}

// List returns what is there, with the resourceVersion of now.
func (r *Run) List() *corev1.ConfigMapList {
	list, err := r.client.List(r.b.Context(), metav1.ListOptions{})
	if err != nil {
		r.b.Fatalf("listing ConfigMaps: %v", err)
	}
	return list
}

// Expect waits until as much as this has been reported since the last call, and exactly this, in any order. A report that is not in
// the list ends the behaviour at once. What is reported beyond is left for the next call: whether it has come by now is chance.
func (r *Run) Expect(want ...string) {
	r.b.Event("the check waits up to %s for: %s", patience, strings.Join(want, ", "))
	r.b.Eventually(patience, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		missing := slices.Clone(want)
		n := min(len(r.got), len(want))
		for _, text := range r.got[:n] {
			i := slices.Index(missing, text)
			if i < 0 && (slices.Contains(want, text) || slices.Contains(r.past, text)) {
				r.b.Fatalf("%s was reported more often than it happened", text)
			}
			if i < 0 {
				r.b.Fatalf("%s was reported, and did not happen", text)
			}
			missing = slices.Delete(missing, i, i+1)
		}
		if len(missing) == 0 {
			r.past, r.got = append(r.past, r.got[:n]...), r.got[n:]
			return ""
		}
		r.expectRunning()
		return "this was not reported: " + strings.Join(missing, ", ")
	})
}

// ExpectOneAtATime fails if a call of handle began before the one before it had returned.
func (r *Run) ExpectOneAtATime() {
	if r.overlap.Load() {
		r.b.Fatalf("handle was called while an earlier call had not returned: changes may be reported in any order")
	}
}

// Away lets watches fail for a second, longer where few are begun. It ends the behaviour if more are begun than one that
// pauses begins, or if the reader's function returns.
func (r *Run) Away() {
	before := len(r.Wire.Requests("watch"))
	r.Wire.Fail(math.MaxInt, kube.Watches)
	r.Wire.CutWatches()
	r.Wire.Release()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // what is counted is requests in a time
		attempts, passed := len(r.Wire.Requests("watch"))-before, time.Since(began)
		r.running()
		switch {
		case attempts > flood:
			r.b.Fatalf("more than %d watches were begun within seconds, although each of them failed", flood)
		case passed > time.Second && attempts >= persistence, passed > 3*time.Second:
			r.Wire.Fail(0, kube.Watches)
			return
		}
	}
}

// flood is how many attempts in some seconds are too many, and persistence how many are enough to say that it does not give up.
const (
	flood       = 500
	persistence = 12
)

// ExpectNothingElse waits until a change of now is reported. Events come in order: after this one nothing of before can come.
func (r *Run) ExpectNothingElse() {
	r.Create("end")
	r.Expect("ADDED end=1")
}

// expectRunning ends the behaviour if the reader's function has returned.
func (r *Run) expectRunning() {
	select {
	case <-r.ended:
		if r.err != nil {
			r.b.Fatalf("the function returned before its context ended, with the error: %v", r.err)
		}
		r.b.Fatalf("the function returned before its context ended, without an error")
	default:
	}
}

func (r *Run) running() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expectRunning()
}

// Watching waits until the reader's function has a watch open.
func (r *Run) Watching() {
	r.b.Eventually(patience, func() string {
		if r.Wire.OpenWatches() > 0 {
			return ""
		}
		r.running()
		return "no watch is open"
	})
}

// Stop ends the context of the reader's function and waits for its end.
func (r *Run) Stop() {
	r.cancel()
	r.b.Eventually(patience, func() string {
		select {
		case <-r.ended:
			return ""
		default:
			return "the context has ended, and the function does not return"
		}
	})
}
