package quiet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace with a Lolcow, and a manager with the reader's controller.
type scene struct {
	b         *check.B
	entry     Entry
	scheme    *runtime.Scheme
	client    client.Client
	namespace string

	// These are the manager's.
	wire *kube.Wire
	seen int
	made atomic.Pointer[queue]
	stop func()
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, entry: entry, scheme: runtime.NewScheme(), namespace: kube.Namespace(b)}
	s.must("making a scheme", clientgoscheme.AddToScheme(s.scheme))
	s.must("making a scheme", v1alpha1.AddToScheme(s.scheme))
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: s.scheme})
	s.must("making a client", err)
	s.must("creating a Lolcow", s.client.Create(b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: s.namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}))
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// start starts a manager with the reader's controller. It remembers nothing of one before.
func (s *scene) start() {
	s.b.Event("the controller starts")
	ctrl.SetLogger(logr.Discard())
	s.wire, s.seen = kube.NewWire(s.b), 0
	s.made.Store(nil)
	mgr, err := ctrl.NewManager(s.wire.Config(), ctrl.Options{
		Scheme:  s.scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	s.must("making a manager", err)
	err = s.entry(mgr, controller.Options{
		SkipNameValidation: new(true), // there is a manager for each behaviour
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			s.made.Store(newQueue(s.b, limiter))
			return s.made.Load()
		},
	})
	s.must("Setup returned an error", err)
	ctx, cancel := context.WithCancel(s.b.Context())
	stopped := s.b.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			s.b.Errorf("the manager returned an error: %v", err)
		}
	})
	s.stop = func() {
		cancel()
		<-stopped
		s.b.Event("the controller has stopped")
	}
	s.b.Cleanup(s.stop)
}

// queue is the controller's. It is made when the manager starts.
func (s *scene) queue() *queue {
	s.b.Eventually(patience, func() string {
		if s.made.Load() == nil {
			return "the controller has no queue: Setup did not pass options on to it"
		}
		return ""
	})
	return s.made.Load()
}

func (s *scene) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: "cow"}}
}

func (s *scene) lolcow() *v1alpha1.Lolcow {
	// Many checks may share the API server.
	time.Sleep(10 * time.Millisecond)
	var lolcow v1alpha1.Lolcow
	s.must("reading the Lolcow", s.client.Get(s.b.Context(), s.request().NamespacedName, &lolcow))
	return &lolcow
}

// deployment is nil if there is none.
func (s *scene) deployment() *appsv1.Deployment {
	time.Sleep(10 * time.Millisecond)
	var deployment appsv1.Deployment
	err := s.client.Get(s.b.Context(), s.request().NamespacedName, &deployment)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must("reading the Deployment", err)
	return &deployment
}

// change is what a user does.
func (s *scene) change(greeting string) {
	s.b.Event("the user changes the greeting to %s", greeting)
	lolcow := s.lolcow()
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = greeting
	s.must("changing the Lolcow", s.client.Patch(s.b.Context(), lolcow, client.MergeFrom(before)))
}

// forget lets writes begin with what is sent from now on.
func (s *scene) forget() { s.seen = len(s.wire.Requests()) }

// writes returns the first write since the start, or since forget, or an empty string.
func (s *scene) writes() string {
	for _, request := range s.wire.Requests()[s.seen:] {
		if kube.Writes(request) {
			return request.String()
		}
	}
	return ""
}

// queue is a queue of a controller that notes what happens to it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	b *check.B

	mu        sync.Mutex
	out, done int
	delays    []time.Duration
}

func newQueue(b *check.B, limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	return &queue{b: b, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// Get hands a key out.
func (q *queue) Get() (reconcile.Request, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.b.Event("Reconcile is called")
		q.mu.Lock()
		defer q.mu.Unlock()
		q.out++
	}
	return request, shutdown
}

// Done says that a key is not at work any more.
func (q *queue) Done(request reconcile.Request) {
	q.TypedRateLimitingInterface.Done(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
}

// AddAfter is what RequeueAfter leads to.
func (q *queue) AddAfter(request reconcile.Request, delay time.Duration) {
	q.b.Event("  another reconciliation is to come in %s", delay)
	q.TypedRateLimitingInterface.AddAfter(request, delay)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delays = append(q.delays, delay)
}

func (q *queue) handedOut() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.out
}

func (q *queue) later() []time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delays
}

// busy says what the queue still does, or returns an empty string.
func (q *queue) busy(count int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out < count || q.out > q.done || q.Len() > 0 {
		return fmt.Sprintf("the queue does not become empty: %d keys were handed out, %d are done, %d wait", q.out, q.done, q.Len())
	}
	return ""
}
