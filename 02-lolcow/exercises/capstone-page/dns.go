package page

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var (
	errDown    = errors.New("the DNS service is down")
	errTimeout = errors.New("the DNS service does not respond: timeout")
	errID      = errors.New("this is no ID")
)

// The record of another user of the service, whose IDs are names.
const (
	otherID   = "a"
	otherHost = "another.example.com"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9.-]{1,63}$`)

// service is the DNS service, which lies outside of the cluster.
type service struct {
	b *check.B

	mu      sync.Mutex
	records map[string]pages.Record
	// requests are all so far, as in "put a.example.com".
	requests []string
	down     bool
	// late is how many requests take effect, and time out then.
	late int
	// crash is the number of the request after which a process crashes, if it is not 0.
	crash   int
	crashed bool
	// onPut is called before a record is written.
	onPut func(pages.Record)
}

func newService(b *check.B) *service {
	return &service{b: b, records: map[string]pages.Record{otherID: {Hostname: otherHost, Service: "another.elsewhere"}}}
}

// set changes what the service does.
func (s *service) set(change func(*service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *service) isDown(down bool) {
	s.b.Event("the DNS service is down: %t", down)
	s.set(func(s *service) { s.down = down })
}

// hostnames are those of all records but that of the other user, which has to be as it was.
func (s *service) hostnames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records[otherID].Hostname != otherHost {
		s.b.Errorf("the DNS record of another user was changed")
	}
	hostnames := []string{}
	for id, record := range s.records {
		if id != otherID {
			hostnames = append(hostnames, record.Hostname)
		}
	}
	slices.Sort(hostnames)
	return hostnames
}

// find returns the record with a hostname.
func (s *service) find(hostname string) (pages.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.records {
		if record.Hostname == hostname {
			return record, true
		}
	}
	return pages.Record{}, false
}

// sent is how many requests have begun like this, with all if text is empty.
func (s *service) sent(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, request := range s.requests {
		if strings.HasPrefix(request, text) {
			n++
		}
	}
	return n
}

// session is the service as one process of the operator sees it.
type session struct {
	*service
	process *kube.Process
}

// send counts a request, and says what comes of it.
func (s *session) send(ctx context.Context, what string, effect func() error) error {
	if s.process.Dead() || ctx.Err() != nil {
		return context.Canceled // a process that has crashed sends nothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, what)
	s.b.Event("  DNS: %s", what)
	if s.down {
		s.b.Event("    it fails: the service is down")
		return errDown
	}
	err := effect()
	switch {
	case !s.crashed && len(s.requests) == s.crash:
		s.crashed = true
		s.process.Crash()
		return context.Canceled
	case s.late > 0 && !strings.HasPrefix(what, "get"):
		s.b.Event("    it takes effect, and times out")
		s.late--
		return errTimeout
	case err != nil:
		s.b.Event("    it fails: %v", err)
	}
	return err
}

func (s *session) Get(ctx context.Context, id string) (record pages.Record, err error) {
	err = s.send(ctx, "get "+id, func() error {
		found, ok := s.records[id]
		if !ok {
			return pages.ErrNotFound
		}
		record = found
		return nil
	})
	return record, err
}

func (s *session) Put(ctx context.Context, id string, record pages.Record) error {
	if s.onPut != nil {
		s.onPut(record)
	}
	return s.send(ctx, "put "+record.Hostname, func() error {
		if !validID.MatchString(id) || record.Hostname == "" {
			return errID
		}
		for other, one := range s.records {
			if other != id && one.Hostname == record.Hostname {
				return pages.ErrTaken
			}
		}
		s.records[id] = record
		return nil
	})
}

func (s *session) Delete(ctx context.Context, id string) error {
	return s.send(ctx, "delete "+id, func() error {
		if _, ok := s.records[id]; !ok {
			return pages.ErrNotFound
		}
		delete(s.records, id)
		return nil
	})
}
