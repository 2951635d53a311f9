package behind

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// herd is a namespace with Lolcows, and the reader's reconciler with its cache.
type herd struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	client    client.Client
	namespace string
	cache     *view

	reconciler reconcile.Reconciler
	// lose is set if the response to the next write is lost.
	lose bool
	// waited is set if Reconcile was seen waiting.
	waited bool
}

// newHerd begins with a cache that lacks that many changes.
func newHerd(b *check.B, entry Entry, behind int) *herd {
	h := &herd{b: b, entry: entry, wire: kube.NewWire(b), namespace: kube.Namespace(b)}
	var err error
	h.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	h.must("making a client", err)
	h.cache = &view{behind: behind}
	h.cache.refresh(h)
	h.restart()
	return h
}

func (h *herd) must(what string, err error) {
	if err != nil {
		h.b.Fatalf("%s: %v", what, err)
	}
}

// restart makes a new reconciler, which remembers nothing. Its cache is as far behind as that of the one before.
func (h *herd) restart() {
	direct, err := client.NewWithWatch(h.wire.Config(), client.Options{Scheme: lab.Scheme()})
	h.must("making a client", err)
	h.b.Event("the operator starts, with a cache that lacks %d changes", len(h.cache.pending))
	h.reconciler = h.entry(interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return h.cache.reader().Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return h.cache.reader().List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return h.response(c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return h.response(c.Update(ctx, object, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return h.response(c.Patch(ctx, object, patch, options...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, object apiruntime.ApplyConfiguration, options ...client.ApplyOption) error {
			return h.response(c.Apply(ctx, object, options...))
		},
	}), direct)
}

// errLost is what a client gets whose connection was lost when the request was on its way, or the response.
var errLost = errors.New("the connection was lost before the response came")

// response is what the reader's code gets for a write.
func (h *herd) response(err error) error {
	if err == nil && h.lose {
		h.lose = false
		h.b.Event("  it is done, and the response is lost")
		return errLost
	}
	return err
}

// reconcile calls the reader's reconciler. It may return an error: the queue would call it again.
func (h *herd) reconcile(name string) {
	h.b.Event("Reconcile %s", name)
	var err error
	done := h.b.Go(func() {
		key := client.ObjectKey{Namespace: h.namespace, Name: name}
		_, err = h.reconciler.Reconcile(h.b.Context(), reconcile.Request{NamespacedName: key})
	})
	h.b.Eventually(patience, func() string {
		select {
		case <-done:
			return ""
		default:
			h.waited = h.waited || waits()
			return "Reconcile does not return"
		}
	})
	if err != nil {
		h.b.Event("  it returned the error: %v", err)
	}
	h.cache.refresh(h)
}

// blocked is the state of a goroutine that waits for a time, or for another goroutine.
var blocked = regexp.MustCompile(`\[(sleep|select|chan receive)`)

// waits says whether a Reconcile waits, and not for the response to a request.
func waits() bool {
	stacks := make([]byte, 1<<20)
	for goroutine := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		state, calls, _ := strings.Cut(goroutine, "\n")
		above, _, found := strings.Cut(calls, ".Reconcile(")
		if found && blocked.MatchString(state) && !strings.Contains(above, "/pkg/client") {
			return true
		}
	}
	return false
}

// catchUp brings the cache up to date.
func (h *herd) catchUp() {
	h.b.Event("the cache is up to date again")
	h.cache.behind = 0
	h.cache.refresh(h)
}

// create creates a Lolcow that the cache has.
func (h *herd) create(name string) {
	h.b.Event("a user creates %s", name)
	h.must("creating a Lolcow", h.client.Create(h.b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: h.namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo, says " + name},
	}))
	behind := h.cache.behind
	h.cache.behind = 0
	h.cache.refresh(h)
	h.cache.behind = behind
}

// cards are the ConfigMaps that a Lolcow controls, on the API server.
func (h *herd) cards(name string) []corev1.ConfigMap {
	var lolcow v1alpha1.Lolcow
	h.must("reading a Lolcow", h.client.Get(h.b.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &lolcow))
	var all corev1.ConfigMapList
	h.must("listing ConfigMaps", h.client.List(h.b.Context(), &all, client.InNamespace(h.namespace)))
	var cards []corev1.ConfigMap
	for _, card := range all.Items {
		if metav1.IsControlledBy(&card, &lolcow) {
			cards = append(cards, card)
		}
	}
	return cards
}

func (h *herd) deleteCard() {
	h.b.Event("a user deletes the ConfigMap of cow")
	for _, card := range h.cards("cow") {
		h.must("deleting a ConfigMap", h.client.Delete(h.b.Context(), &card))
	}
	h.cache.refresh(h)
}

func (h *herd) expectAtMostOne(name string) {
	if n := len(h.cards(name)); n > 1 {
		h.b.Fatalf("%s has %d ConfigMaps: the cache lacked the first one when the second was created", name, n)
	}
}

func (h *herd) expectOne(name string) {
	h.expectAtMostOne(name)
	if len(h.cards(name)) == 0 {
		h.b.Fatalf("%s has no ConfigMap that it controls", name)
	}
}

func (h *herd) expectGreeting() {
	h.expectOne("cow")
	if greeting, want := h.cards("cow")[0].Data["greeting"], "Moo, says cow"; greeting != want {
		h.b.Fatalf("the greeting in the ConfigMap of cow is %q, and should be %q", greeting, want)
	}
}
