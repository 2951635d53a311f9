package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
)

// ErrCrash is what the requests of a process come to that has crashed.
var ErrCrash = errors.New("the controller has crashed")

// Process is a controller that crashes once, at one of its writes or when Crash is called. Its requests go through Before, which is
// for Wire.Before.
type Process struct {
	b      *check.B
	direct http.RoundTripper

	mu      sync.Mutex
	number  int
	after   bool
	of      string
	writes  int
	crashed bool
	// ctx is that of the process that is running, which ends with it.
	ctx context.Context
	end context.CancelFunc
}

// NewProcess returns a process that does not crash by itself.
func NewProcess(b *check.B) *Process {
	direct, err := rest.TransportFor(Config(b))
	if err != nil {
		b.Fatalf("making a transport: %v", err)
	}
	return &Process{b: b, direct: direct, ctx: b.Context(), end: func() {}}
}

// CrashAt lets it crash at the write with this number, from 1, before the write has taken effect or after.
func (p *Process) CrashAt(number int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number, p.after = number, after
}

// CrashOf has it count only the writes to one resource, with its subresources. Several controllers write in any order, so that
// the number of a write among all of them is not always that of the same write.
func (p *Process) CrashOf(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of = resource
}

// Run starts the process, and calls f in it.
func (p *Process) Run(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(p.b.Context())
	defer cancel()
	p.mu.Lock()
	p.ctx, p.end = ctx, cancel
	p.mu.Unlock()
	return f(ctx)
}

// Crash ends the process that is running: no request of it takes effect any more.
func (p *Process) Crash() {
	p.b.Event("  the controller crashes")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashed = true
	p.end()
}

// Crashed says whether it ever has.
func (p *Process) Crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// Dead says whether the process that was started last has ended.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ctx.Err() != nil
}

// Before is called for each request of the process.
func (p *Process) Before(request Request, r *http.Request) (*http.Response, error) {
	if p.Dead() {
		return nil, ErrCrash
	}
	if !Writes(request) || !p.isNext(request) {
		return nil, nil
	}
	if p.after {
		response, err := p.direct.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		response.Body.Close()
		p.b.Event("  it takes effect")
	}
	p.Crash()
	return nil, ErrCrash
}

// isNext counts a write, and says whether the process crashes at it.
func (p *Process) isNext(request Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if resource, _, _ := strings.Cut(request.Resource, "/"); p.of != "" && resource != p.of {
		return false
	}
	p.writes++
	return p.writes == p.number
}
