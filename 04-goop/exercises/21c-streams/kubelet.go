package streams

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/workbook/shared/exercise/kube"
)

// kubelet stands in for all kubelets: it responds to requests for logs. It knows the options follow and container.
type kubelet struct {
	mu       sync.Mutex
	logs     map[string]*podLog
	requests int
	open     int
	// most is how many logs were open at the same time.
	most int
}

// podLog is the log of one Pod.
type podLog struct {
	lines []string
	over  bool
	// changed is closed at the next change.
	changed chan struct{}
}

func newKubelet() *kubelet { return &kubelet{logs: map[string]*podLog{}} }

// begin makes an empty log.
func (k *kubelet) begin(pod string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logs[pod] = &podLog{changed: make(chan struct{})}
}

// write adds a line to a log.
func (k *kubelet) write(pod string) {
	k.change(pod, func(l *podLog) { l.lines = append(l.lines, fmt.Sprintf("this is line %d of %s", len(l.lines)+1, pod)) })
}

// end ends a log.
func (k *kubelet) end(pod string) { k.change(pod, func(l *podLog) { l.over = true }) }

func (k *kubelet) change(pod string, how func(l *podLog)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[pod]
	how(l)
	close(l.changed)
	l.changed = make(chan struct{})
}

// lines are those of a log so far.
func (k *kubelet) lines(pod string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.logs[pod]; l != nil {
		return l.lines
	}
	return nil
}

func (k *kubelet) requested() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests
}

func (k *kubelet) openNow() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

// mostOpen is how many logs were open at the same time.
func (k *kubelet) mostOpen() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.most
}

// before is for Wire.Before.
func (k *kubelet) before(request kube.Request, r *http.Request) (*http.Response, error) {
	if request.Resource != "pods/log" {
		return nil, nil
	}
	for option := range request.Query {
		if option != "follow" && option != "container" {
			return kube.Failure(r, apierrors.NewBadRequest(
				"the transport that stands in for the kubelet knows the options follow and container, and not "+option)), nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests++
	log := k.logs[request.Name]
	if log == nil {
		return kube.Failure(r, apierrors.NewBadRequest(
			fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", "work", request.Name))), nil
	}
	k.open++
	k.most = max(k.most, k.open)
	s := &stream{kubelet: k, log: log, follow: request.Query.Get("follow") == "true", ctx: r.Context(), closed: make(chan struct{})}
	s.release = sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.open--
	})
	context.AfterFunc(r.Context(), s.release)
	response := kube.Response(r, s)
	response.Header.Set("Content-Type", "text/plain")
	return response, nil
}

// stream is a log that is open: from the response until it has been read to its end, or is closed.
type stream struct {
	kubelet *kubelet
	log     *podLog
	follow  bool
	ctx     context.Context
	release func()
	closed  chan struct{}
	once    sync.Once

	// Only Read uses these.
	line int
	rest string
}

// Read waits for more, if the log is followed and not at its end.
func (s *stream) Read(p []byte) (int, error) {
	for s.rest == "" {
		if err := s.next(); err != nil {
			s.release()
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next waits for the next line, or for the next change.
func (s *stream) next() error {
	s.kubelet.mu.Lock()
	lines, over, changed := s.log.lines, s.log.over, s.log.changed
	s.kubelet.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case s.line < len(lines):
		s.rest = lines[s.line] + "\n"
		s.line++
		return nil
	case over || !s.follow:
		return io.EOF
	}
	select {
	case <-changed:
		return nil
	case <-s.closed:
		return fs.ErrClosed
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.release()
	return nil
}
