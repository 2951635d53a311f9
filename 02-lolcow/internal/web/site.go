// Package web serves what the cow says: a page for browsers, a drawing in plain
// text for terminals, and the two endpoints for the kubelet's probes.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"example.com/workbook/02-lolcow/internal/cow"
)

//go:embed page static
var files embed.FS

// The templates are parsed when the program starts: they are part of it, and a
// broken one should never reach a user.
var page = template.Must(template.ParseFS(files, "page/*"))

// Site serves one greeting. It is safe for concurrent use.
type Site struct {
	handler  http.Handler
	html     []byte
	text     []byte
	draining atomic.Bool
}

// NewSite renders greeting once, as a page and as text, and logs each request
// to log. It fails only if the embedded page is broken.
func NewSite(greeting string, log *slog.Logger) (*Site, error) {
	visible := cow.Visible(greeting)
	var html bytes.Buffer
	err := page.ExecuteTemplate(&html, "index.html", struct{ Greeting, Size string }{visible, size(visible)})
	if err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	s := &Site{html: html.Bytes(), text: []byte(cow.Say(greeting))}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	if err := serveAssets(mux); err != nil {
		return nil, fmt.Errorf("reading the page's files: %w", err)
	}
	s.handler = logged(log, secured(mux))
	return s, nil
}

// ServeHTTP serves one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handler.ServeHTTP(w, r)
}

// Drain makes /readyz say 503 from now on, so that no new requests are sent
// here. All other paths respond as before.
func (s *Site) Drain() {
	s.draining.Store(true)
}

// index serves the greeting in the form that the client prefers.
func (s *Site) index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept, User-Agent")
	if wantsText(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(s.text) // a client that has gone needs no response
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(s.html)
}

// healthz says that the process lives; it says so while it drains, too.
func (s *Site) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, "ok")
}

// readyz says whether new requests may be sent here.
func (s *Site) readyz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.draining.Load() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serveAssets registers each embedded file under its own path. A file server on
// the whole folder would also list it.
func serveAssets(mux *http.ServeMux) error {
	return fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		tag := entityTag(content)
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			// Browsers revalidate, so that the page of a new version is not shown with
			// the cached stylesheet of the old one.
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
		})
		return nil
	})
}

// size returns the CSS class for a greeting: the shorter the greeting, the
// larger the type.
func size(greeting string) string {
	switch n := utf8.RuneCountInString(greeting); {
	case n <= 40:
		return "short"
	case n <= 240:
		return "medium"
	default:
		return "long"
	}
}
