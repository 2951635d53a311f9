package plugin

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// muted drops a response from the moment in which its connection is lost without an error.
type muted struct {
	http.ResponseWriter
	lost *atomic.Bool
}

func (m *muted) Flush() { m.ResponseWriter.(http.Flusher).Flush() }

func (m *muted) Write(text []byte) (int, error) {
	if m.lost.Load() {
		return len(text), nil
	}
	return m.ResponseWriter.Write(text)
}

// A proxy that loses a connection forwards nothing more, and does not end a watch at its time-out.
func TestWatchesThatGoSilent(t *testing.T) {
	defer func(lasts, slack time.Duration) { watchFor, watchSlack = lasts, slack }(watchFor, watchSlack)
	watchFor, watchSlack = time.Second, 100*time.Millisecond
	g, f := NewWithT(t), newFake(t)
	var lost atomic.Bool
	serve := f.slow.Handler
	f.slow.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") && !lost.Load() {
			w = &muted{w, &lost}
		}
		serve.ServeHTTP(w, r)
	})
	f.operator(func(goop string) {
		f.waits(goop, v1alpha1.ReasonWorking, "")
		eventually(t, "both are watched", func() bool { return f.count("watch goops") > 0 && f.count("watch pods") > 0 })
		lost.Store(true)
		f.ends(goop, "n1", 0, "hello\n", 0)
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: hello\n", ""}))
}
