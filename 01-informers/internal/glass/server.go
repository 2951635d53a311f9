// Package glass serves the glass informer: a page that shows each part of an informer while it runs on a real cluster, and
// that can pause and step it. The informer is that of internal/handmade, whose parts report the events. event.go is the API
// of the page.
package glass

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

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
	pipeline *pipeline
	resource Resource
	clock    clock.WithTicker
	clients  chan struct{} // one entry for each connected client
	ended    <-chan struct{}
	end      context.CancelFunc
}

// ServeHTTP handles one request. Streams end with the request's context, and with Run.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run runs the informer and its workers until ctx ends. It is called once.
func (s *Server) Run(ctx context.Context) {
	defer s.end()
	var running sync.WaitGroup
	defer running.Wait()
	s.pipeline.run(ctx, &running, func() {
		s.hub.control("synced", "The first list is in the store, and the handler was called for it: the workers start")
	})
}

func newServer(options Options, hub *hub, pipeline *pipeline) (*Server, error) {
	ended, end := context.WithCancel(context.Background())
	s := &Server{
		hub: hub, gate: hub.gate, pipeline: pipeline, resource: options.resource(),
		clock: clock.RealClock{}, clients: make(chan struct{}, hub.limits.Clients), ended: ended.Done(), end: end,
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, fmt.Errorf("reading the page's files: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /state", s.state)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /object", s.object)
	mux.HandleFunc("POST /pause", s.pause)
	mux.HandleFunc("POST /resume", s.resume)
	mux.HandleFunc("POST /step", s.step)
	s.handler = guarded(mux, options.AnyHost, options.log())
	return s, nil
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	state := s.hub.state()
	state.Resource, state.Clients = s.resource, len(s.clients)
	respond(w, state)
}

func (s *Server) pause(w http.ResponseWriter, _ *http.Request) {
	s.close()
	respond(w, Control{Now: s.hub.Now()})
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
	respond(w, Control{Now: s.hub.Now()})
}

func (s *Server) step(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), stepTimeout)
	defer cancel()
	s.close()
	moved, ok := s.gate.Step(ctx)
	if !ok {
		s.hub.control("stepped", "A step: no item waits, so none moved")
		respond(w, Control{Now: s.hub.Now()})
		return
	}
	stepped := heldItem(moved)
	what := "the list"
	if stepped.Key != "" {
		what = stepped.Key
	}
	s.hub.control("stepped", fmt.Sprintf("A step: %s moved to %s", what, stepped.To))
	respond(w, Control{Now: s.hub.Now(), Stepped: &stepped})
}

// respond writes JSON. An error is ignored: the client has disconnected.
func respond(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(content)
}

// discard is the log of a server without one.
var discard = slog.New(slog.DiscardHandler)
