package plugin

import (
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// slow is a server that delays requests of a method, if a test has set that.
type slow struct {
	http.Handler
	began atomic.Bool // such a request has arrived

	lock   sync.Mutex
	method string
	wait   func()
}

func (s *slow) delay(method string, wait func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.method, s.wait = method, wait
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.lock.Lock()
	method, wait := s.method, s.wait
	s.lock.Unlock()
	if r.Method == method {
		s.began.Store(true)
		wait()
	}
	s.Handler.ServeHTTP(w, r)
}

func streamsTo(b *buffer) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{Out: b, ErrOut: b}
}
