package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/lesson"
)

// mirror is a reflector with everything around it that can be looked at.
type mirror struct {
	*lesson.World
	door      *door
	requests  lesson.Requests
	store     *diary
	reflector *cache.Reflector

	// forgetful has the next watch from a version answered with 410.
	forgetful atomic.Bool
	// old has every streamed list refused, as by a server that does not know it.
	old bool
}

// backoff is shorter than the default, so that the lesson is too, and without jitter, so that it is the
// same in every run. The default begins at 0.8 s, doubles up to 30 s, and adds up to as much again at
// random, so that the clients of a server do not all come back at once.
var backoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 10}

func newMirror(ctx context.Context, world *lesson.World) (*mirror, error) {
	server, _, err := rest.DefaultServerUrlFor(world.Config)
	if err != nil {
		return nil, fmt.Errorf("reading the server's address: %w", err)
	}
	m := &mirror{World: world, store: newDiary()}
	if m.door, err = newDoor(ctx, net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443"))); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(world.Config)
	config.Dial = m.door.dial
	client, err := kubernetes.NewForConfig(m.requests.Record(config))
	if err != nil {
		return nil, err
	}
	pods := client.CoreV1().Pods(world.Namespace)
	m.reflect(&corev1.Pod{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if answer, err := m.instead(options); answer != nil || err != nil {
				return answer, err
			}
			return pods.Watch(ctx, options)
		},
	})
	return m, nil
}

// reflect makes the reflector. Its name is in its log lines and metrics; without one it is called after a
// line of client-go itself, as all others are.
func (m *mirror) reflect(example any, pair *cache.ListWatch) {
	m.reflector = cache.NewReflectorWithOptions(pair, example, m.store, cache.ReflectorOptions{Name: "lesson", Backoff: &backoff})
}

// instead plays a server's answer to a watch, or returns nothing where the real one is to answer.
func (m *mirror) instead(options metav1.ListOptions) (watch.Interface, error) {
	streamed := options.SendInitialEvents != nil
	switch {
	case m.old && streamed:
		return nil, apierrors.NewBadRequest("unknown option: sendInitialEvents")
	case !streamed && m.forgetful.CompareAndSwap(true, false):
		return expired(), nil
	}
	return nil, nil
}

// expired is a watch as a server answers it that no longer knows the version: ./listwatch gets a real one.
func expired() watch.Interface {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	events := watch.NewFakeWithChanSize(1, false)
	events.Error(&status)
	events.Stop()
	return events
}

// start runs the reflector until ctx ends, or until what it returns is called, which also waits for it.
// What it would log is thrown away: the lesson shows it better.
func (m *mirror) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	var running sync.WaitGroup
	running.Go(func() { m.reflector.RunWithContext(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// patience is how long something may take that is sure to come.
const patience = 10 * time.Second

func until(ctx context.Context, what string, done func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// untilStore waits until the reflector has done n things to the store, and prints them.
func (m *mirror) untilStore(ctx context.Context, n int) error {
	err := until(ctx, fmt.Sprintf("the store was written %d times", n), func() bool { return len(m.store.all()) >= n })
	if err != nil {
		return err
	}
	m.Printf("   store:  %s\n", strings.Join(m.store.take(), ", "))
	return nil
}

// told prints what was asked of the server since it was last called.
func (m *mirror) told() {
	asked := m.requests.Take()
	if len(asked) == 0 {
		m.Printf("   asked:  nothing\n")
	}
	for _, request := range asked {
		m.Printf("   asked:  %s\n", request)
	}
}
