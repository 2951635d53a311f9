package main

import (
	"context"
	"fmt"
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
	"example.com/workbook/01-informers/internal/transport"
)

// testbed is a reflector whose requests and calls of the store are recorded, and whose server can fail.
type testbed struct {
	*lesson.Env
	outage    transport.Outage
	requests  lesson.Requests
	store     *recordingStore
	reflector *cache.Reflector

	// expire makes the next watch from a resourceVersion fail with 410.
	expire atomic.Bool
	// noStreaming makes every streaming list fail, as on a server that does not have the option.
	noStreaming bool
}

// backoff is shorter than the default, and it has no jitter, so that the output is the same in every run. The default
// begins at 0.8 s, doubles up to 30 s, and adds up to as much again at random, so that the clients of a server do not
// all return at the same moment.
var backoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 10}

func newTestbed(env *lesson.Env) *testbed {
	bed := &testbed{Env: env, store: newStore()}
	config := rest.CopyConfig(env.Config)
	bed.outage.Attach(config)
	pods := lesson.Must(kubernetes.NewForConfig(bed.requests.Attach(config))).CoreV1().Pods(env.Namespace)
	pair := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if simulated, err := bed.simulate(options); simulated != nil || err != nil {
				return simulated, err
			}
			return pods.Watch(ctx, options)
		},
	}
	bed.reflector = cache.NewReflectorWithOptions(pair, &corev1.Pod{}, bed.store, cache.ReflectorOptions{Name: "lesson", Backoff: &backoff})
	return bed
}

// simulate returns the failure of a watch, or nil if the server is to respond.
func (bed *testbed) simulate(options metav1.ListOptions) (watch.Interface, error) {
	streaming := options.SendInitialEvents != nil
	switch {
	case bed.noStreaming && streaming:
		return nil, apierrors.NewBadRequest("unknown option: sendInitialEvents")
	case !streaming && bed.expire.CompareAndSwap(true, false):
		return expired(), nil
	}
	return nil, nil
}

// expired returns a watch with the event that a server sends if the resourceVersion is too old. ./listwatch gets a
// real one.
func expired() watch.Interface {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	events := watch.NewFakeWithChanSize(1, false)
	events.Error(&status)
	events.Stop()
	return events
}

// start runs the reflector, without its log, until ctx ends or stop is called. stop waits for its end.
func (bed *testbed) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	var running sync.WaitGroup
	running.Go(func() { bed.reflector.RunWithContext(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// printStore waits for n calls of the store, and prints them.
func (bed *testbed) printStore(ctx context.Context, n int) {
	lesson.Until(ctx, fmt.Sprintf("the store was called %d times", n), func() bool { return len(bed.store.calls.All()) >= n })
	bed.Printf("   store:   %s\n", strings.Join(bed.store.calls.Take(), ", "))
}
