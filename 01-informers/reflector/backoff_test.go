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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// asked is one call of a reflector, and when.
type asked struct {
	at   time.Duration
	what string
}

// script answers the watches of a reflector, one after the other, and notes them. Time is the bubble's.
type script struct {
	start   time.Time
	answers []func() (watch.Interface, error)
	// last is given to all that come after the answers.
	last func() (watch.Interface, error)
	log  []asked
}

// run runs a reflector on the script for a while.
func (s *script) run(t *testing.T, duration time.Duration, backoff *wait.Backoff) {
	t.Helper()
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), duration)
	defer cancel()
	s.reflector(backoff).RunWithContext(ctx)
}

func (s *script) reflector(backoff *wait.Backoff) *cache.Reflector {
	s.start = time.Now()
	return cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.note("list", metav1.ListOptions{})
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			s.note("watch", options)
			if len(s.answers) == 0 {
				return s.last()
			}
			next := s.answers[0]
			s.answers = s.answers[1:]
			return next()
		},
	}, &corev1.Pod{}, newDiary(), cache.ReflectorOptions{Name: "test", Backoff: backoff})
}

func (s *script) note(what string, options metav1.ListOptions) {
	if options.SendInitialEvents != nil {
		what = "stream"
	}
	if options.ResourceVersion != "" {
		what += " from " + options.ResourceVersion
	}
	s.log = append(s.log, asked{time.Since(s.start), what})
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

func refused() (watch.Interface, error) { return nil, syscall.ECONNREFUSED }

// streamed is an empty list at version 5, and a watch that then stays as it is until it is closed.
func streamedList(closed time.Duration) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFakeWithChanSize(1, false)
		events.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
		time.AfterFunc(closed, events.Stop)
		return events, nil
	}
}

// quiet is a watch on which nothing comes until it is closed.
func quiet(closed time.Duration) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFake()
		time.AfterFunc(closed, events.Stop)
		return events, nil
	}
}

func failing(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

// The default: 0.8 s, twice as long each time up to 30 s, each made longer by up to its double at random.
func TestDefaultBackOffDoublesUpTo30Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{last: refused}
		s.run(t, 110*time.Second, nil)
		expected := 800 * time.Millisecond
		waits := s.waits()
		g.Expect(len(waits)).To(BeNumerically(">=", 5))
		for _, waited := range waits {
			g.Expect(waited).To(And(BeNumerically(">=", expected), BeNumerically("<=", 2*expected)))
			expected = min(2*expected, 30*time.Second)
		}
	})
}

// Two minutes after the last time that it began anew, it does so again: also while the server is still
// away, as wait.Backoff.DelayWithReset looks at the clock, and not at whether anything succeeded.
func TestDefaultBackOffBeginsAnewEveryTwoMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{last: refused}
		s.run(t, time.Hour, nil)
		anew := 0
		for _, waited := range s.waits() {
			if waited <= 1600*time.Millisecond {
				anew++
			}
		}
		g.Expect(anew).To(BeNumerically("~", 25, 6))
		g.Expect(len(s.log)).To(BeNumerically("<", 300), "a server that is away for an hour is asked less than 300 times")
	})
}

func TestBackOffIsAnOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{last: refused}
		s.run(t, 3*time.Second, &backoff)
		const ms = time.Millisecond
		g.Expect(s.waits()).To(Equal([]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms}))
	})
}

// Servers end watches after some minutes, as they were asked to. That is no error and no reason to list.
func TestWatchThatEndsIsWatchedOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &script{
			answers: []func() (watch.Interface, error){streamedList(7 * time.Minute), quiet(6 * time.Minute)},
			last:    quiet(time.Hour),
		}
		s.run(t, 20*time.Minute, nil)
		g.Expect(s.log).To(Equal([]asked{
			{0, "stream"}, {7 * time.Minute, "watch from 5"}, {13 * time.Minute, "watch from 5"},
		}))
	})
}

// What a reflector does after a watch depends on how it failed.
func TestWhichFailuresLeadToAList(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failure func() (watch.Interface, error)
		want    string
	}{
		"refused connection":              {refused, "watch from 5"},
		"watch function that returns EOF": {failing(io.EOF), "stream from 5"},
		"410 in the stream":               {func() (watch.Interface, error) { return expired(), nil }, "stream from 5"},
		"closed at once, and no event":    {quiet(0), "stream from 5"},
		"closed after a second":           {quiet(time.Second), "watch from 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				next := streamedList(time.Hour)
				if test.want == "watch from 5" {
					next = quiet(time.Hour)
				}
				s := &script{answers: []func() (watch.Interface, error){streamedList(time.Minute), test.failure}, last: next}
				s.run(t, 10*time.Minute, nil)
				g.Expect(s.all()).To(Equal([]string{"stream", "watch from 5", test.want}))
			})
		})
	}
}

// An error that it does not know ends ListAndWatchWithContext. RunWithContext reports it and begins again.
// (Not in a bubble: utilruntime.HandleError, which it is reported to, has a clock that all tests share.)
func TestAnyOtherErrorLeadsToAList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	noLuck := errors.New("no luck")
	s := &script{answers: []func() (watch.Interface, error){streamedList(0), failing(noLuck), failing(noLuck)}, last: refused}
	reflector := s.reflector(&backoff)
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	g.Expect(reflector.ListAndWatchWithContext(ctx)).To(Succeed(), "a watch that is closed at once")
	g.Expect(reflector.ListAndWatchWithContext(ctx)).To(MatchError(noLuck))
	g.Expect(s.all()).To(Equal([]string{"stream", "stream from 5", "list", "watch from 5"}))
}

// Where the streamed list itself expires, it forgets its version and asks for the latest.
func TestStreamedListThatExpiresIsAskedForWithoutVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		gone := func() (watch.Interface, error) { return expired(), nil }
		s := &script{
			answers: []func() (watch.Interface, error){streamedList(time.Minute), gone, gone},
			last:    streamedList(time.Hour),
		}
		s.run(t, 10*time.Minute, nil)
		g.Expect(s.all()).To(Equal([]string{"stream", "watch from 5", "stream from 5", "stream"}))
	})
}
