package plugin

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Two waits. They are variables so that tests need not wait as long.
var (
	// stragglers is how long pods and their records are waited for when the work is over and no pod has been delivered
	// since: they come by another watch, and thousands of them take a while. Pods that are being ended have 10 s for it.
	stragglers = 15 * time.Second

	// unheard is how long nobody needs to have taken up a Goop before that is worth a word.
	unheard = 10 * time.Second
)

// session follows one Goop. All of it but the reading of logs is one goroutine's, so nothing of it is locked.
type session struct {
	api      *api
	goop     *v1alpha1.Goop // as it was last seen
	sink     sink           // nil: nobody wants the output
	names    *names
	notices  *notices
	progress *progress
	clock    clock.WithTicker

	// toTheEnd goes on until the Goop is over, and reads logs while they are written if live is set; otherwise the
	// session ends when all that is there now has been read.
	toTheEnd, live bool

	workers    map[string]*logReader // by pod
	finished   map[place]bool
	delivered  map[place]bool
	pool       pool
	deliveries chan delivery
	readers    sync.WaitGroup

	heard     bool // of the Goop
	deleted   bool
	noPods    bool // they may not be seen
	heardPods bool
	begunAt   time.Time
	overAt    time.Time // zero: the Goop is not over
	lastPodAt time.Time
}

func newSession(a *app, api *api, goop *v1alpha1.Goop) *session {
	s := &session{
		api: api, goop: goop, clock: a.clock,
		names:    &names{},
		progress: &progress{clock: a.clock, since: a.clock.Now()},
		workers:  map[string]*logReader{}, finished: map[place]bool{}, delivered: map[place]bool{},
		deliveries: make(chan delivery),
		begunAt:    a.clock.Now(),
	}
	s.notices = newNotices(a.console, s.names)
	return s
}

// run returns when there is nothing to wait for any more: nil when the Goop is over, or, without toTheEnd, when all
// has been read; otherwise why not. It may leave readers behind that still wait for the output to be taken.
func (s *session) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	goops := s.api.watchGoop(ctx, s.goop.Name)
	var pods feed[*corev1.Pod] // where no output is wanted nothing is ever heard of pods
	if s.sink != nil {
		pods = s.api.watchPods(ctx, s.goop.Name)
	}
	ticker := s.clock.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if over, err := s.over(); over {
			return err
		}
		s.dispatch(ctx)
		select {
		case c := <-goops.changes:
			if err := s.onGoop(c); err != nil {
				return err
			}
		case <-goops.heardAll:
			goops.heardAll = nil
			// If it went before it was first heard of, it is in no list.
			s.deleted = s.deleted || !s.heard
		case c := <-pods.changes:
			s.onPod(c)
		case <-pods.heardAll:
			pods.heardAll, s.heardPods, s.lastPodAt = nil, true, s.clock.Now()
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

// over says whether there is nothing left to wait for.
func (s *session) over() (bool, error) {
	switch {
	case s.overAt.IsZero() && s.deleted:
		return true, errDeleted
	case s.overAt.IsZero() && s.toTheEnd && refusal(s.goop) != "":
		return true, errRefused
	case s.sink == nil:
		return !s.overAt.IsZero(), nil
	case s.pool.active > 0:
		return false, nil
	case !s.toTheEnd:
		return s.heardPods || s.noPods, nil
	case s.overAt.IsZero():
		return false, nil
	case s.noPods || len(s.finished) >= int(s.goop.Status.Succeeded+s.goop.Status.Failed):
		return true, nil
	}
	return s.heardPods && s.clock.Since(latest(s.overAt, s.lastPodAt)) > stragglers/3, nil
}

func (s *session) onTick() {
	now := s.clock.Now()
	if s.goop.Status.ObservedGeneration == 0 && now.Sub(s.begunAt) > unheard {
		s.notices.once("nothing has taken up the Goop " + s.goop.Name + " yet: does the operator run?")
	}
	for _, w := range s.pool.due(now) {
		w.atEnd = false
		s.consider(w)
	}
	s.breakOffSilent()
	if !s.overAt.IsZero() && now.Sub(latest(s.overAt, s.lastPodAt)) > stragglers {
		s.cutOff()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
