package uninstall

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/workbook/shared/exercise/kube"
)

// observe looks at each request of the reader's.
func (k *kitchen) observe(request kube.Request, _ *http.Request) (*http.Response, error) {
	k.mu.Lock()
	looked := k.looked
	k.mu.Unlock()
	if looked != nil && request.Resource == "teapots" && !kube.Writes(request) {
		looked()
	}
	if request.Verb != "delete" || (request.Resource != "deployments" && request.Resource != "customresourcedefinitions") {
		return nil, nil
	}
	if pots, err := k.list(k.b.Context()); err == nil && len(pots) > 0 {
		k.b.Errorf("%s, and this was sent: %s", whatIsLeft(pots), request)
	}
	return nil, nil
}

func whatIsLeft(pots []unstructured.Unstructured) string {
	begun := func(pot unstructured.Unstructured) bool { return pot.GetDeletionTimestamp() != nil }
	if n := len(slices.DeleteFunc(pots, begun)); n > 0 {
		return fmt.Sprintf("the deletion of %d of the Teapots has not begun", n)
	}
	return "a Teapot is being deleted, and is still there"
}

// late lets a user create a Teapot when the deletion has begun, and another one when that of the late one begins.
func (k *kitchen) late() {
	var mu sync.Mutex
	names, last := []string{"late", "later"}, ""
	next := func(request kube.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(names) > 0 && (last == "" || request.Namespace == last) {
			last = kube.Namespace(k.b)
			k.create(last, names[0])
			names = names[1:]
		}
	}
	k.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if request.Resource == "teapots" && kube.Writes(request) {
			next(request)
		}
		return k.observe(request, r)
	})
}

// goesBefore lets a user delete the Teapot, and the operator clean up after it, just before the reader's deletion of it.
func (k *kitchen) goesBefore(name string) {
	var once sync.Once
	k.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if request.Resource == "teapots" && request.Verb == "delete" && request.Name == name {
			once.Do(func() {
				pot := &unstructured.Unstructured{}
				pot.SetGroupVersionKind(teapots)
				pot.SetNamespace(request.Namespace)
				pot.SetName(name)
				k.b.Event("a user deletes the Teapot %s, just before", name)
				k.must("deleting a Teapot", k.client.Delete(k.b.Context(), pot))
				k.isGone(pot, "the Teapot")
			})
		}
		return k.observe(request, r)
	})
}

// takesLong lets the operator clean up when the reader's code has looked at the Teapots often. Code that waits for the events of a
// watch need not look.
func (k *kitchen) takesLong() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limit += looks * pause
	k.early = looks
	var last time.Time
	k.looked = func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		// A second more: a request also takes time.
		if k.early > 0 && !last.IsZero() && time.Since(last) > k.b.Patience(pause+time.Second) {
			k.b.Errorf("more than two seconds pass until it looks at the Teapots again: it would notice too late that one is gone")
			k.early = 0
		}
		last = time.Now()
		k.early--
	}
}

// cancelWhenDeleted cancels a context when the deletion of the only Teapot has begun and the reader's code looks at it for the
// second time: during that request, or some time after it. Code that waits for the events of a watch sends none, and is cancelled some
// time later.
func (k *kitchen) cancelWhenDeleted(after time.Duration, cancel func()) {
	begun := func() bool {
		pots, err := k.list(k.b.Context())
		return err == nil && len(pots) == 1 && pots[0].GetDeletionTimestamp() != nil
	}
	seen := 0
	k.mu.Lock()
	k.looked = func() {
		if !begun() {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		seen++
		switch {
		case seen != 2:
		case after == 0:
			k.b.Event("the context of Uninstall ends during this request")
			cancel()
		default:
			k.b.Event("the context of Uninstall ends a moment after this request")
			time.AfterFunc(k.b.Patience(after), cancel)
		}
	}
	k.mu.Unlock()
	stopped := k.b.Go(func() {
		for k.b.Context().Err() == nil && !begun() {
			time.Sleep(10 * time.Millisecond)
		}
		select {
		case <-k.b.Context().Done():
		case <-time.After(k.b.Patience(patience)):
		}
		cancel()
	})
	k.b.Cleanup(func() { <-stopped })
}
