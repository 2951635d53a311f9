package controller

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// clockTolerance is how far the local clock may be from that of the API server: the header Date has whole seconds, and the
// response has taken some time.
const clockTolerance = 5 * time.Second

// ServerClock shows the time of the API server. The times in the status and in the record, and what is measured from them, do
// not depend on the clock of the replica that leads.
type ServerClock struct {
	local clock.PassiveClock
	// ahead is by how much the local clock is ahead, in nanoseconds.
	ahead atomic.Int64
}

// NewServerClock returns a clock that shows the time of local until the first response.
func NewServerClock(local clock.PassiveClock) *ServerClock { return &ServerClock{local: local} }

// Now returns the time of the API server.
func (c *ServerClock) Now() time.Time { return c.local.Now().Add(-time.Duration(c.ahead.Load())) }

// Since returns the time since t.
func (c *ServerClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Wrap returns a transport that reads the time of the API server from its responses.
func (c *ServerClock) Wrap(next http.RoundTripper) http.RoundTripper {
	return datedTransport{clock: c, next: next}
}

type datedTransport struct {
	clock *ServerClock
	next  http.RoundTripper
}

func (t datedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(req)
	if err != nil {
		return response, err
	}
	if date, invalid := http.ParseTime(response.Header.Get("Date")); invalid == nil {
		ahead := t.clock.local.Now().Sub(date)
		if ahead.Abs() <= clockTolerance {
			ahead = 0
		}
		t.clock.ahead.Store(int64(ahead))
	}
	return response, nil
}
