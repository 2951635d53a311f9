package handmade

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

const soon = 10 * time.Second

// quick lets a reflector retry after 10 ms.
var quick = &wait.Backoff{Duration: 10 * time.Millisecond, Steps: 1, Cap: 10 * time.Millisecond}

// recorder is an observer that keeps all events.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) observe(event Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// of returns the "stage/type" of the events about one name, in order.
func (r *recorder) of(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, event := range r.events {
		if event.Key.Name == name {
			found = append(found, string(event.Stage)+"/"+event.Type)
		}
	}
	return found
}

func (r *recorder) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// bench is an informer for the ConfigMaps of a namespace, with a work queue and workers.
type bench struct {
	*Informer
	*recorder
	gate    *Gate
	link    *lesson.Link
	client  kubernetes.Interface
	ns      string
	workers *Workers
	stop    context.CancelFunc
	stopped chan struct{}
}

type setting struct {
	plain    bool // without a probe
	listOnly bool // the source cannot stream a list
	paused   bool
	names    []string // ConfigMaps that exist before
	work     func(context.Context, cache.ObjectName) error
}

func start(t *testing.T, s setting) *bench {
	t.Helper()
	seen := &recorder{}
	probe := &Probe{Observe: seen.observe}
	b := &bench{recorder: seen, gate: &probe.Gate, client: testserver.Client(t), ns: testserver.Namespace(t), stopped: make(chan struct{})}
	for _, name := range s.names {
		b.create(t, name)
	}
	var client kubernetes.Interface
	b.link, client = lesson.NewLink(testserver.Config(t))
	source := ListWatch(client.CoreV1().ConfigMaps(b.ns))
	if s.listOnly {
		lw := cache.ToListerWatcherWithContext(source)
		source = cache.ToListWatcherWithWatchListSemantics( // as a fake client, which cannot stream a list
			&cache.ListWatch{ListWithContextFunc: lw.ListWithContext, WatchFuncWithContext: lw.WatchWithContext}, fake.NewClientset())
	}
	if s.plain {
		probe = nil
	}
	if s.paused {
		b.gate.Pause()
	}
	b.Informer = New(Options{ListerWatcher: source, Backoff: quick, Probe: probe})
	queue := NewWorkQueue("bench", workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Second), probe)
	b.AddHandler(Enqueue(queue))
	if s.work == nil {
		s.work = func(context.Context, cache.ObjectName) error { return nil }
	}
	b.workers = &Workers{Queue: queue, Count: 2, Work: s.work, Probe: probe}
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	go func() {
		defer close(b.stopped)
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		if cache.WaitFor(ctx, "", b.HasSyncedChecker()) {
			b.workers.Run(ctx)
		}
		running.Wait()
	}()
	t.Cleanup(func() { stop(); <-b.stopped })
	if !s.paused {
		NewWithT(t).Eventually(b.HasSyncedChecker().Done(), soon).Should(BeClosed())
	}
	return b
}

func (b *bench) create(t *testing.T, name string) {
	t.Helper()
	_, err := b.client.CoreV1().ConfigMaps(b.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) change(t *testing.T, name, value string) {
	t.Helper()
	configMaps := b.client.CoreV1().ConfigMaps(b.ns)
	current, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current.Data = map[string]string{"value": value}
	if _, err := configMaps.Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) remove(t *testing.T, name string) {
	t.Helper()
	if err := b.client.CoreV1().ConfigMaps(b.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// stored returns the names in the store, with their values.
func (b *bench) stored() []string {
	found := []string{}
	for _, obj := range b.Store().List() {
		if object, ok := obj.(*corev1.ConfigMap); ok {
			found = append(found, object.Name+"="+object.Data["value"])
		}
	}
	slices.Sort(found)
	return found
}
