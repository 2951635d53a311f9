package plugin

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Two waiting times. They are variables so that tests can shorten them.
var (
	// stragglers is how long the session waits for pods and their records after the work has ended and no pod event has
	// arrived since. Pods come from another watch than the Goop, and thousands of them take a while. Pods that are
	// terminating have 10 s for that.
	stragglers = 15 * time.Second

	// unobserved is after which time without an operator's status the session prints a notice.
	unobserved = 10 * time.Second
)

// maxPause is a bound of the time between two tries of an informer whose watch fails. client-go's back-off of 30 s is up to
// doubled by its jitter; the rest is for the list.
const maxPause = 90 * time.Second

// session follows one Goop. A single goroutine uses all of it except the reading of logs, so it needs no locks.
type session struct {
	api      *api
	goop     *v1alpha1.Goop // the last observed state
	sink     sink           // nil: the output is not shown
	names    *names
	notices  *notices
	progress *progress
	clock    clock.WithTicker

	// toTheEnd: the session runs until the Goop has ended, and reads logs while they are written if live is set. Otherwise
	// it ends when all existing output has been read.
	toTheEnd, live bool

	// stopTimeout is called when the Goop has ended: --timeout limits the work, and not the reading of its output.
	stopTimeout func()

	workers    map[string]*workerState // by pod
	finished   map[place]bool
	delivered  map[place]bool
	pool       pool
	deliveries chan delivery
	readers    sync.WaitGroup

	observed      bool // the Goop was observed
	deleted       bool
	podsForbidden bool // the user may not watch pods
	podsSynced    bool
	begunAt       time.Time
	endedAt       time.Time // zero: the Goop has not ended
	lastPodAt     time.Time
	troubleAt     time.Time // when the pods' watch last failed

	relists            chan relistResult
	relisting          bool
	relistedAt         time.Time
	relistFoundNothing bool
}

func newSession(a *app, api *api, goop *v1alpha1.Goop) *session {
	s := &session{
		api: api, goop: goop, clock: a.clock, stopTimeout: func() {},
		names:    &names{},
		progress: &progress{clock: a.clock, since: a.clock.Now()},
		workers:  map[string]*workerState{}, finished: map[place]bool{}, delivered: map[place]bool{},
		deliveries: make(chan delivery), relists: make(chan relistResult),
		begunAt: a.clock.Now(), lastPodAt: a.clock.Now(),
	}
	s.notices = newNotices(a.console, s.names)
	return s
}

// run returns when there is nothing left to wait for. It returns nil when the Goop has ended, or, without toTheEnd, when
// everything has been read; otherwise the reason. Readers may still be running that wait for their output to be written.
func (s *session) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	goops := s.api.watchGoop(ctx, s.goop.Name)
	var pods feed[*corev1.Pod] // stays empty if no output is shown
	if s.sink != nil {
		pods = s.api.watchPods(ctx, s.goop.Name)
	}
	ticker := s.clock.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if done, err := s.done(); done {
			return err
		}
		s.dispatch(ctx)
		s.relist(ctx)
		select {
		case c := <-goops.changes:
			if err := s.onGoop(c); err != nil {
				return err
			}
		case <-goops.synced:
			goops.synced = nil
			// A Goop that was deleted before the first list is not in the list.
			s.deleted = s.deleted || !s.observed
		case c := <-pods.changes:
			s.onPod(c)
		case <-pods.synced:
			pods.synced, s.podsSynced, s.podsForbidden, s.lastPodAt = nil, true, false, s.clock.Now()
		case l := <-s.relists:
			s.onRelist(l)
		case d := <-s.deliveries:
			if err := s.onDelivery(d); err != nil {
				return err
			}
		case <-ticker.C():
			s.onTick()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// done reports whether there is nothing left to wait for.
func (s *session) done() (bool, error) {
	switch {
	case s.endedAt.IsZero() && s.deleted:
		return true, errDeleted
	case s.endedAt.IsZero() && s.toTheEnd && rejectionMessage(s.goop) != "":
		return true, errRejected
	case s.sink == nil:
		return !s.endedAt.IsZero(), nil
	case s.pool.active > 0:
		return false, nil
	case !s.toTheEnd:
		return s.podsSynced || s.relistFoundNothing, nil
	case s.endedAt.IsZero():
		return false, nil
	}
	return s.finishedAll() || s.relistFoundNothing, nil
}

func (s *session) onTick() {
	now := s.clock.Now()
	if s.goop.Status.ObservedGeneration == 0 && now.Sub(s.begunAt) > unobserved {
		s.notices.once("no operator has observed the Goop " + s.goop.Name + " yet: is the operator running?")
	}
	for _, w := range s.pool.due(now) {
		s.queueIfReadable(w)
	}
	s.breakOffSilent()
	limit := stragglers
	if s.podTrouble() {
		limit = 3 * stragglers // then ends of workers come from lists, which may fail for a while too
	}
	if !s.endedAt.IsZero() && s.waited() > limit {
		s.cutOff()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
