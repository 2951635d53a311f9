package hotfirst

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace with ConfigMaps, and a controller with the reader's handler. Its one worker waits in Reconcile until it is
// released.
type scene struct {
	handler.EventHandler
	b          *check.B
	configMaps typed.ConfigMapInterface
	release    func()

	mu sync.Mutex
	// creations are the names of ConfigMaps in the order in which the handler has got them, and updates how many it got.
	creations []string
	updates   int
	// order has the keys that were handed out, of which checked have been looked for.
	order   []string
	checked int
}

// newScene creates ConfigMaps, of which each names the Lolcow of its own name, and starts the controller.
func newScene(b *check.B, entry Entry, count int) *scene {
	namespace := kube.Namespace(b)
	s := &scene{EventHandler: entry(), b: b, configMaps: kube.Client(b).CoreV1().ConfigMaps(namespace)}
	for i := range count {
		s.create(fmt.Sprintf("cow-%d", i))
	}
	b.Event("the controller starts")
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(kube.Config(b), ctrl.Options{
		Scheme:     lab.Scheme(),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:    server.Options{BindAddress: "0"},
		Logger:     logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true)}, // there is a manager for each behaviour
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	s.must("making a manager", err)
	released := make(chan struct{})
	s.release = sync.OnceFunc(func() {
		s.b.Event("the worker goes on")
		close(released)
	})
	s.must("adding the controller", ctrl.NewControllerManagedBy(mgr).Named("cows").Watches(&corev1.ConfigMap{}, s).
		Complete(reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			s.mu.Lock()
			if req.Namespace == namespace {
				s.order = append(s.order, req.Name)
			}
			s.mu.Unlock()
			<-released
			return reconcile.Result{}, nil
		})))
	ctx, cancel := context.WithCancel(b.Context())
	stopped := b.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			b.Errorf("the manager returned an error: %v", err)
		}
	})
	b.Cleanup(func() { cancel(); s.release(); <-stopped })
	s.created(count)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// Create calls the reader's handler, and notes that it has returned.
func (s *scene) Create(ctx context.Context, e event.CreateEvent, q keys) {
	s.EventHandler.Create(ctx, e, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creations = append(s.creations, e.Object.GetName())
}

// Update calls the reader's handler, and notes that it has returned.
func (s *scene) Update(ctx context.Context, e event.UpdateEvent, q keys) {
	s.EventHandler.Update(ctx, e, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
}

// create creates a ConfigMap that names the Lolcow of its name.
func (s *scene) create(name string) {
	_, err := s.configMaps.Create(s.b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"lolcow": name}},
	}, metav1.CreateOptions{})
	s.must("creating a ConfigMap", err)
}

func (s *scene) change(name, patch string) {
	s.b.Event("a user changes the ConfigMap %s: %s", name, patch)
	_, err := s.configMaps.Patch(s.b.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must("changing a ConfigMap", err)
}

func (s *scene) remove() {
	s.b.Event("a user deletes the ConfigMap new")
	s.must("deleting a ConfigMap", s.configMaps.Delete(s.b.Context(), "new", metav1.DeleteOptions{}))
}

// created waits until the handler has got so many creations.
func (s *scene) created(count int) {
	s.b.Eventually(patience, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.creations) < count {
			return fmt.Sprintf("the informer has delivered %d ConfigMaps, of %d", len(s.creations), count)
		}
		return ""
	})
}

// update waits until the handler has got an update.
func (s *scene) update() {
	s.b.Eventually(patience, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.updates == 0 {
			return "the informer has delivered no update"
		}
		return ""
	})
}

// waitingLast waits until a key is at work, and returns the one that was enqueued last. All that are enqueued wait behind the first.
func (s *scene) waitingLast() string {
	s.b.Eventually(patience, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.order) == 0 {
			return "no key is handed out"
		}
		return ""
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	// The controller starts its worker when the first list has been handled: any key may be the one at work.
	for _, name := range slices.Backward(s.creations) {
		if name != s.order[0] {
			return name
		}
	}
	return ""
}

// handedOut waits until these keys have been handed out, since the last call.
func (s *scene) handedOut(names ...string) {
	s.b.Eventually(patience, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			if !slices.Contains(s.order[s.checked:], name) {
				return fmt.Sprintf("the Lolcow %s is not reconciled", name)
			}
		}
		s.checked = len(s.order)
		return ""
	})
}

// expectAmongFirst waits until a key is handed out, and asserts that few came before it.
func (s *scene) expectAmongFirst(name string) {
	s.handedOut(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Event("the first keys were %s", strings.Join(s.order[:min(len(s.order), 2*first)], ", "))
	if slices.Index(s.order, name) > first {
		s.b.Fatalf("a user has changed one, and it is handed out after keys of the first list that wait longer")
	}
}
