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

// server simulates an API server with one Lease and its resourceVersion.
type server struct {
	*testing.T
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	// skew is the difference of a candidate's clock: it is added to the times that the candidate writes.
	skew map[string]time.Duration
}

// inBubble runs a test with a server in a synctest bubble, where time advances only while every goroutine waits.
func inBubble(t *testing.T, test func(g Gomega, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(NewWithT(t), &server{T: t, skew: map[string]time.Duration{}})
	})
}

// start starts a candidate, which is stopped at the end of the test.
func (s *server) start(identity string, durations durations, release bool) *candidate {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	c, err := start(ctx, &lock{Interface: &memoryLock{server: s, identity: identity}}, durations, release)
	NewWithT(s).Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() {
		cancel()
		<-c.stopped
		synctest.Wait()
	})
	return c
}

// now returns the current record.
func (s *server) now() resourcelock.LeaderElectionRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.record
}

// writes returns how often the Lease was written.
func (s *server) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// memoryLock is the lock of one candidate.
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

func (l *memoryLock) write(record resourcelock.LeaderElectionRecord, check func() error) error {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if err := check(); err != nil {
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
