package exitcode

import (
	"context"
	"net/http"
	"sync"
	"time"

	"example.com/workbook/shared/exercise/kube"
)

// cancelAtDelete ends the context of Run when it sends the request to delete.
func (r *run) cancelAtDelete() {
	r.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Deletes(request) {
			r.cancel(context.Canceled)
		}
		return nil, nil
	})
}

// create creates a Goop of the same name, as another user.
func (r *run) create() {
	r.b.Event("another user creates a Goop of the same name")
	goop := r.goop()
	r.must("creating a Goop", r.client.Create(r.b.Context(), goop))
	r.other = goop.UID
}

// delete deletes the Goop, as another user.
func (r *run) delete() {
	r.b.Event("another user deletes the Goop")
	r.must("deleting the Goop", r.client.Delete(r.b.Context(), r.goop()))
}

// deleteBeforeWatch lets another user delete the Goop just before the watch of Run begins. One that begins before there is a Goop
// sees the deletion, which comes later then.
func (r *run) deleteBeforeWatch() {
	var once sync.Once
	r.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		switch {
		case request.Verb == "watch":
			if _, err := r.get(); err == nil {
				once.Do(r.delete)
			}
		case request.Verb == "create" && r.wire.OpenWatches() > 0:
			once.Do(func() { r.b.Go(r.deleteWhenCreated) })
		}
		return nil, nil
	})
}

func (r *run) deleteWhenCreated() {
	for r.b.Context().Err() == nil {
		if _, err := r.get(); err == nil {
			r.delete()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *run) replace() {
	r.delete()
	r.create()
}

// replaceBeforeDelete lets another user be a moment faster than the deletion by Run.
func (r *run) replaceBeforeDelete() {
	var once sync.Once
	r.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Deletes(request) {
			once.Do(r.replace)
		}
		return nil, nil
	})
}

// holdDeletions lets the deletions by Run wait until the function that it returns is called.
func (r *run) holdDeletions() (release func()) {
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	r.b.Cleanup(release)
	r.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Deletes(request) {
			<-released
		}
		return nil, nil
	})
	return release
}
