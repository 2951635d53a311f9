package main

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// server holds one Lease in memory, with a resourceVersion, as the API server does.
type server struct {
	*testing.T
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	// skew is added to the times that one of the candidates writes: its clock is wrong.
	skew map[string]time.Duration
}

// inBubble runs a test with a server, in a synctest bubble: time stands still unless everybody waits.
func inBubble(t *testing.T, test func(g Gomega, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(NewWithT(t), &server{T: t, skew: map[string]time.Duration{}})
	})
}

// stand starts a candidate, which ends with the test.
func (s *server) stand(identity string, times times, release bool) *candidate {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	c, err := stand(ctx, &lock{Interface: &memoryLock{server: s, identity: identity}}, times, release)
	NewWithT(s).Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() {
		cancel()
		<-c.stopped
		synctest.Wait()
	})
	return c
}

// now is the record as it is.
func (s *server) now() resourcelock.LeaderElectionRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.record
}

// writes is how often the Lease was written.
func (s *server) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// memoryLock is one candidate's view of the server's Lease.
type memoryLock struct {
	server   *server
	identity string
	seen     int
}

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, leaseName)
	}
	l.seen = l.server.version
	record := *l.server.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error {
		if l.server.record != nil {
			return apierrors.NewAlreadyExists(leases, leaseName)
		}
		return nil
	})
}

func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error {
		if l.seen != l.server.version {
			return apierrors.NewConflict(leases, leaseName, nil)
		}
		return nil
	})
}

func (l *memoryLock) write(record resourcelock.LeaderElectionRecord, refuse func() error) error {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if err := refuse(); err != nil {
		return err
	}
	skew := l.server.skew[l.identity]
	record.RenewTime = metav1.NewTime(record.RenewTime.Add(skew))
	record.AcquireTime = metav1.NewTime(record.AcquireTime.Add(skew))
	l.server.version++
	l.server.record, l.seen = &record, l.server.version
	return nil
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return l.identity }
func (l *memoryLock) Describe() string   { return leaseName }
