package suite

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/workbook/shared/exercise/check"
)

// steppedClock is ahead of the machine's by what the check says.
type steppedClock struct{ ahead atomic.Int64 }

func (c *steppedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// step sets the clock forward.
func (c *steppedClock) step(by time.Duration) { c.ahead.Add(int64(by)) }

// health is how the DNS service responds.
type health int

const (
	works health = iota
	fails
	hangs
)

// dns is a service outside of the cluster. It keeps records, each with a hostname, under IDs that its clients choose.
type dns struct {
	b      *check.B
	wire   *wire
	url    string
	closed chan struct{}

	mu      sync.Mutex
	records map[string]string
	health  health
	puts    int
}

func newDNS(b *check.B, w *wire) *dns {
	d := &dns{b: b, wire: w, closed: make(chan struct{}), records: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/records/{id}", d.serve)
	server := httptest.NewServer(mux)
	d.url = server.URL
	b.Cleanup(func() {
		close(d.closed)
		server.Close()
	})
	return d
}

// serve responds to one request.
func (d *dns) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Hostname string `json:"hostname"`
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	injected := d.wire.fault(r.Method + " of the record")
	if injected == lost {
		panic(http.ErrAbortHandler)
	}
	code := http.StatusInternalServerError
	switch d.state() {
	case hangs:
		d.b.Event("  %s %s %s: no response", r.Method, r.URL.Path, body.Hostname)
		select {
		case <-r.Context().Done():
		case <-d.closed:
		}
		panic(http.ErrAbortHandler)
	case works:
		code = d.handle(r.Method, r.PathValue("id"), body.Hostname, err)
	}
	d.b.Event("  %s %s %s: %d", r.Method, r.URL.Path, body.Hostname, code)
	if injected == crashed {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	if code == http.StatusOK {
		_ = json.NewEncoder(w).Encode(map[string]string{"hostname": d.of(r.PathValue("id"))})
	}
}

var validID = regexp.MustCompile(`^[A-Za-z0-9.-]{1,63}$`)

// handle changes or reads a record, and returns the status of the response.
func (d *dns) handle(method, id, hostname string, bodyErr error) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, found := d.records[id]
	switch {
	case !validID.MatchString(id) || method == http.MethodPut && (bodyErr != nil || hostname == ""):
		return http.StatusBadRequest
	case method == http.MethodPut:
		d.records[id] = hostname
		d.puts++
		return http.StatusOK
	case method != http.MethodGet && method != http.MethodDelete:
		return http.StatusMethodNotAllowed
	case !found:
		return http.StatusNotFound
	case method == http.MethodDelete:
		delete(d.records, id)
		return http.StatusNoContent
	}
	return http.StatusOK
}

func (d *dns) state() health {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.health
}

// set says how the service responds from now on.
func (d *dns) set(to health) {
	d.b.Event("the DNS service %s", map[health]string{works: "works", fails: "responds with 500", hangs: "does not respond"}[to])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health = to
}

// of is the hostname of a record.
func (d *dns) of(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records[id]
}

// hostnames are those of all records.
func (d *dns) hostnames() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Values(d.records))
}

// written is how often a record was written.
func (d *dns) written() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.puts
}

// drop deletes all records, as someone else may.
func (d *dns) drop() {
	d.b.Event("someone deletes the records of the DNS service")
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.records)
}
