package deploy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// impatient has waits speak at once.
func impatient(t *testing.T) {
	t.Helper()
	quiet, interval := quietWait, noteInterval
	quietWait, noteInterval = 0, 300*time.Millisecond
	t.Cleanup(func() { quietWait, noteInterval = quiet, interval })
}

func newTeapot(finalizers ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Teapot",
		"metadata": map[string]any{"name": "held", "namespace": "default", "finalizers": finalizers},
	}}
}

// removeFinalizers does what the teapot's operator would, after a while.
func removeFinalizers(ctx context.Context, t *testing.T, c client.Client, after time.Duration) {
	t.Helper()
	time.Sleep(after)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(ctx, newTeapot(), patch); err != nil {
		t.Error(err)
	}
}

func heldTeapot(ctx context.Context, t *testing.T, cfg *rest.Config) (client.Client, []*unstructured.Unstructured) {
	t.Helper()
	objects, err := Render(stage, "crd", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(cfg)
	if err := errors.Join(err, Apply(ctx, t.Output(), cfg, objects)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, newTeapot("example.com/cleanup")); err != nil {
		t.Fatal(err)
	}
	return c, objects
}

func TestObjectsThatAreBeingDeleted(t *testing.T) {
	cfg := startAPIServer(t)
	impatient(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	wantHeld := func(t *testing.T, said string) {
		t.Helper()
		for _, want := range []string{"Teapot default/held has finalizer example.com/cleanup", "make run", "kubectl -n default patch teapot.example.com held --type=merge"} {
			if !strings.Contains(said, want) {
				t.Errorf("got %q, want it to contain %q", said, want)
			}
		}
	}

	t.Run("a CRD is waited for, and is there afterwards", func(t *testing.T) {
		c, objects := heldTeapot(ctx, t, cfg)
		if err := c.Delete(ctx, objects[0].DeepCopy()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // for the API server to see it
		if held, err := Held(ctx, cfg, objects); err != nil || len(held) != 1 {
			t.Errorf("got %d CRDs that are held, %v", len(held), err)
		}
		go removeFinalizers(ctx, t, c, time.Second)
		var said bytes.Buffer
		if err := Apply(ctx, &said, cfg, objects); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, said.String())
		time.Sleep(2 * time.Second)
		live := objects[0].DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil || live.GetDeletionTimestamp() != nil {
			t.Errorf("the CRD is gone a moment later, or will be: %v", err)
		}
	})

	t.Run("what is applied beside a CRD that is held comes first", func(t *testing.T) {
		c, objects := heldTeapot(ctx, t, cfg)
		if err := c.Delete(ctx, objects[0].DeepCopy()); err != nil {
			t.Fatal(err)
		}
		operator := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "operator", "namespace": "default"},
		}}
		go func() {
			for c.Get(ctx, client.ObjectKeyFromObject(operator), operator.DeepCopy()) != nil && ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
			}
			removeFinalizers(ctx, t, c, 0)
		}()
		if err := Apply(ctx, t.Output(), cfg, []*unstructured.Unstructured{objects[0], newTeapot(), operator}); err != nil {
			t.Fatal(err)
		}
		if err := Uninstall(ctx, t.Output(), cfg, stage); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("deleting says what is held", func(t *testing.T) {
		c, objects := heldTeapot(ctx, t, cfg)
		go removeFinalizers(ctx, t, c, 2*time.Second)
		var said bytes.Buffer
		if err := Delete(ctx, &said, cfg, objects); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, said.String())
	})

	t.Run("a namespace", func(t *testing.T) { testNamespace(ctx, t, cfg) })
}

// testNamespace does what the namespace controller would.
func testNamespace(ctx context.Context, t *testing.T, cfg *rest.Config) {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kitchen"},
	}}
	inside := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "menu", "namespace": "kitchen"},
	}}
	c, err := newClient(cfg)
	if err := errors.Join(err, Apply(ctx, t.Output(), cfg, []*unstructured.Unstructured{namespace, inside})); err != nil {
		t.Fatal(err)
	}
	old := namespace.DeepCopy()
	if err := errors.Join(c.Get(ctx, client.ObjectKeyFromObject(old), old), c.Delete(ctx, old.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(time.Second)
		live := old.DeepCopy()
		if err := errors.Join(c.Delete(ctx, inside.DeepCopy()), c.Get(ctx, client.ObjectKeyFromObject(live), live)); err != nil {
			t.Error(err)
		}
		live.Object["spec"] = map[string]any{}
		if err := c.SubResource("finalize").Update(ctx, live); err != nil {
			t.Error(err)
		}
	}()
	var said bytes.Buffer
	if err := Apply(ctx, &said, cfg, []*unstructured.Unstructured{namespace, inside}); err != nil {
		t.Fatal(err)
	}
	live := namespace.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil || live.GetDeletionTimestamp() != nil || live.GetUID() == old.GetUID() {
		t.Errorf("it is the namespace that is being deleted: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(inside), inside.DeepCopy()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "Namespace kitchen, which is being deleted") {
		t.Errorf("it was not said what is waited for: %q", said.String())
	}
}

func TestAWaitEnds(t *testing.T) {
	impatient(t)
	broken := errors.New("no such thing")
	w := condition{
		what: "tea", limit: time.Second,
		met: func(context.Context) (bool, error) { return false, broken },
		why: func(context.Context) string { return "the kettle has finalizer x" },
	}
	var said bytes.Buffer
	err := eventually(t.Context(), &said, w)
	for _, want := range []string{"waiting for tea: given up after 1s: the kettle has finalizer x", "no such thing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to contain %q", err, want)
		}
	}
	if !strings.Contains(said.String(), "waiting for tea, for 1s at most: the kettle has finalizer x") {
		t.Errorf("it was not said: %q", said.String())
	}

	ctx, cancel := context.WithCancel(t.Context())
	w.limit = time.Hour
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := eventually(ctx, io.Discard, w); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of Ctrl-C", err)
	}
}
