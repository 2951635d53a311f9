// Package glass serves the glass informer: a page that shows each part of an informer while it runs on a real cluster, and
// that can pause and step it. The informer is that of internal/handmade, whose parts report the events. event.go is the API
// of the page.
package glass

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"example.com/workbook/01-informers/internal/handmade"
)

//go:embed page
var page embed.FS

// stepTimeout bounds how long a step waits for items between two stages. It does not wait for work that takes longer.
const stepTimeout = time.Second

// Server is the informer and its page. It is an http.Handler, safe for concurrent use.
type Server struct {
	handler  http.Handler
	hub      *hub
	gate     *handmade.Gate
	informer *handmade.Informer
	workers  *handmade.Workers
	resource Resource
	clients  chan struct{} // one entry for each connected client
	ended    <-chan struct{}
	end      context.CancelFunc
}

// ServeHTTP handles one request. Streams end with the request's context, and with Run.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run runs the informer and its workers until ctx ends. It is called once. The workers start when the caches have synced, as
// in every controller.
func (s *Server) Run(ctx context.Context) {
	defer s.end()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.informer.Run(ctx) })
	if cache.WaitFor(ctx, "", s.informer.HasSyncedChecker()) {
		s.hub.control(controlSynced, "The first list is in the store, and the handler was called for it: the workers start")
		s.workers.Run(ctx)
	}
}

func (s *Server) routes() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the name is invalid
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /state", s.state)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /object", s.object)
	mux.HandleFunc("POST /pause", s.pause)
	mux.HandleFunc("POST /resume", s.resume)
	mux.HandleFunc("POST /step", s.step)
	return mux
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	state := s.hub.state()
	state.Resource, state.Clients = s.resource, len(s.clients)
	respond(w, state)
}

// object sends one object of the store as YAML. Confidential fields are not in the store: see strip.
func (s *Server) object(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if key == "" {
		http.Error(w, "the key is missing: /object?key=NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	found, known, err := s.informer.Store().GetByKey(key)
	if err != nil || !known {
		http.Error(w, fmt.Sprintf("the store has no %q", key), http.StatusNotFound)
		return
	}
	content, err := yaml.Marshal(found)
	if err != nil {
		http.Error(w, fmt.Sprintf("writing YAML: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.resource.MetadataOnly {
		fmt.Fprintln(w, "# Only the metadata: the API server does not send the content.")
	}
	_, _ = w.Write(content)
}

func (s *Server) pause(w http.ResponseWriter, _ *http.Request) {
	s.close()
	respond(w, Control{Now: s.hub.snapshot()})
}

// close closes the gate, and publishes that if it was open.
func (s *Server) close() {
	if !s.gate.Paused() {
		s.gate.Pause()
		s.hub.control("paused", "Paused: no item moves")
	}
}

func (s *Server) resume(w http.ResponseWriter, _ *http.Request) {
	if s.gate.Paused() {
		s.gate.Resume()
		s.hub.control("resumed", "Resumed: all items move")
	}
	respond(w, Control{Now: s.hub.snapshot()})
}

func (s *Server) step(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), stepTimeout)
	defer cancel()
	s.close()
	var stepped *Held
	text := "A step: no item waits, so none moved"
	if moved, ok := s.gate.Step(ctx); ok {
		stepped = new(heldItem(moved))
		text = fmt.Sprintf("A step: %s moved to %s", cmp.Or(stepped.Key, "the list"), stepped.To)
	}
	s.hub.control("stepped", text)
	respond(w, Control{Now: s.hub.snapshot(), Stepped: stepped})
}

// respond writes JSON. An error is ignored: the client has disconnected.
func respond(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(content)
}
