package main

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// request is one call of a reflector, and its time.
type request struct {
	at   time.Duration
	what string
}

// script simulates the server of a reflector: each watch gets the next result. It records the calls, with the time of
// the synctest bubble.
type script struct {
	start   time.Time
	results []func() (watch.Interface, error)
	// last is the result of all watches after those.
	last func() (watch.Interface, error)
	log  []request
}

// run runs a reflector with the default back-off on the script for a while.
func (s *script) run(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), duration)
	defer cancel()
	s.reflector(nil).RunWithContext(ctx)
}

func (s *script) reflector(backoff *wait.Backoff) *cache.Reflector {
	s.start = time.Now()
	return cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.record("list", metav1.ListOptions{})
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			s.record("watch", options)
			if len(s.results) == 0 {
				return s.last()
			}
			next := s.results[0]
			s.results = s.results[1:]
			return next()
		},
	}, &corev1.Pod{}, newStore(), cache.ReflectorOptions{Name: "test", Backoff: backoff})
}

func (s *script) record(what string, options metav1.ListOptions) {
	if options.SendInitialEvents != nil {
		what = "stream"
	}
	if options.ResourceVersion != "" {
		what += " from " + options.ResourceVersion
	}
	s.log = append(s.log, request{time.Since(s.start), what})
}

func (s *script) all() []string {
	var all []string
	for _, one := range s.log {
		all = append(all, one.what)
	}
	return all
}

func (s *script) waits() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(s.log); i++ {
		all = append(all, s.log[i].at-s.log[i-1].at)
	}
	return all
}

func connectionRefused() (watch.Interface, error) { return nil, syscall.ECONNREFUSED }

// streamingList is an empty list of resourceVersion 5, and a watch without events until it is closed.
func streamingList(closed time.Duration) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFakeWithChanSize(1, false)
		events.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
		time.AfterFunc(closed, events.Stop)
		return events, nil
	}
}

// silent is a watch without events until it is closed.
func silent(closed time.Duration) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFake()
		time.AfterFunc(closed, events.Stop)
		return events, nil
	}
}

func failing(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

// The delay doubles from 0.8 s to 30 s, and up to as much again is added at random.
func TestDefaultBackOffDoublesUpTo30Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{last: connectionRefused}
		s.run(t, 110*time.Second)
		expected := 800 * time.Millisecond
		waits := s.waits()
		g.Expect(len(waits)).To(BeNumerically(">=", 5))
		for _, waited := range waits {
			g.Expect(waited).To(And(BeNumerically(">=", expected), BeNumerically("<=", 2*expected)))
			expected = min(2*expected, 30*time.Second)
		}
	})
}

// wait.Backoff.DelayWithReset resets the delay by the clock, even if no request succeeded.
func TestDefaultBackOffIsResetEveryTwoMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{last: connectionRefused}
		s.run(t, time.Hour)
		resets := 0
		for _, waited := range s.waits() {
			if waited <= 1600*time.Millisecond {
				resets++
			}
		}
		g.Expect(resets).To(BeNumerically("~", 25, 6))
		g.Expect(len(s.log)).To(BeNumerically("<", 300), "fewer than 300 requests in an outage of an hour")
	})
}

// A watch has a timeout of some minutes. After it, the reflector resumes without a delay and without a list.
func TestReflectorResumesAWatchThatEndsWithoutADelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{
			results: []func() (watch.Interface, error){streamingList(7 * time.Minute), silent(6 * time.Minute)},
			last:    silent(time.Hour),
		}
		s.run(t, 20*time.Minute)
		g.Expect(s.log).To(Equal([]request{
			{0, "stream"}, {7 * time.Minute, "watch from 5"}, {13 * time.Minute, "watch from 5"},
		}))
	})
}

func TestWhichFailuresLeadToAList(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failure func() (watch.Interface, error)
		want    string
	}{
		"connection refused":               {connectionRefused, "watch from 5"},
		"429 as the response":              {failing(apierrors.NewTooManyRequestsError("busy")), "watch from 5"},
		"410 as the response":              {failing(apierrors.NewResourceExpired("too old")), "stream from 5"},
		"watch function that returns EOF":  {failing(io.EOF), "stream from 5"},
		"410 in the stream":                {func() (watch.Interface, error) { return expired(), nil }, "stream from 5"},
		"closed at once, without an event": {silent(0), "stream from 5"},
		"closed after a second":            {silent(time.Second), "watch from 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				next := streamingList(time.Hour)
				if test.want == "watch from 5" {
					next = silent(time.Hour)
				}
				s := &script{results: []func() (watch.Interface, error){streamingList(time.Minute), test.failure}, last: next}
				s.run(t, 10*time.Minute)
				g.Expect(s.all()).To(Equal([]string{"stream", "watch from 5", test.want}))
			})
		})
	}
}

// An unknown error ends ListAndWatchWithContext. RunWithContext reports it and calls ListAndWatchWithContext again.
// The test is not in a bubble, because utilruntime.HandleError has a clock that all tests share.
func TestAnyOtherErrorLeadsToAList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	unknown := errors.New("unknown")
	s := &script{results: []func() (watch.Interface, error){streamingList(0), failing(unknown), failing(unknown)}, last: connectionRefused}
	reflector := s.reflector(&backoff)
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	g.Expect(reflector.ListAndWatchWithContext(ctx)).To(Succeed(), "a watch that is closed at once")
	g.Expect(reflector.ListAndWatchWithContext(ctx)).To(MatchError(unknown))
	g.Expect(s.all()).To(Equal([]string{"stream", "stream from 5", "list", "watch from 5"}))
}
