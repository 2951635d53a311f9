package main

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

// change deletes one pod and creates another.
func (bed *testbed) change(ctx context.Context, deleted, created string) error {
	if err := bed.DeletePods(ctx, deleted); err != nil {
		return err
	}
	return bed.CreatePods(ctx, created)
}

func (bed *testbed) list(ctx context.Context) error {
	bed.Printf("1. The start\n")
	if err := bed.printStore(ctx, 1); err != nil {
		return err
	}
	bed.PrintRequests(bed.requests.Take())
	bed.Printf("   One request: a streaming list, which continues as a watch.\n\n")
	return nil
}

func (bed *testbed) watch(ctx context.Context) error {
	bed.Printf("2. b is deleted, d is created\n")
	if err := bed.change(ctx, "b", "d"); err != nil {
		return err
	}
	if err := bed.printStore(ctx, 3); err != nil {
		return err
	}
	bed.PrintRequests(bed.requests.Take())
	last, err := bed.Client.CoreV1().Pods(bed.Namespace).Get(ctx, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// The reflector updates it after its call of the store.
	if err := lesson.Until(ctx, "LastSyncResourceVersion changes", func() bool {
		return bed.reflector.LastSyncResourceVersion() == last.ResourceVersion
	}); err != nil {
		return err
	}
	bed.Printf("   LastSyncResourceVersion is now the resourceVersion of the last event, d's.\n\n")
	return nil
}

func (bed *testbed) resume(ctx context.Context) error {
	bed.Printf("3. The server is down; a is deleted and e is created\n")
	bed.outage.begin()
	if err := bed.change(ctx, "a", "e"); err != nil {
		return err
	}
	const attempts = 4
	if err := lesson.Until(ctx, "it retried", func() bool { return len(bed.requests.All()) >= attempts }); err != nil {
		return err
	}
	tried := bed.requests.Take()[:attempts]
	bed.PrintRequests(tried)
	bed.Printf("   waited:  %s\n", strings.Join(waits(tried), ", "))
	bed.Printf("   store:   still %s: a reader gets the old state, and no error\n", strings.Join(names(bed.store.List()), " "))

	bed.Printf("   The server is up again.\n")
	bed.outage.end()
	if err := bed.printStore(ctx, 3); err != nil {
		return err
	}
	bed.printLastRequest()
	bed.Printf("   It resumed the watch from its last resourceVersion: no list, and the deletion is an event.\n\n")
	return nil
}

func (bed *testbed) printLastRequest() {
	requests := bed.requests.Take()
	bed.PrintRequests(requests[len(requests)-1:])
}

// waits returns the times between requests, rounded down to those of the back-off: a slow computer prints the same.
func waits(requests []lesson.Request) []string {
	var all []string
	expected := backoff.Duration
	for i := 1; i < len(requests); i++ {
		waited := min(requests[i].At.Sub(requests[i-1].At), expected)
		all = append(all, waited.Round(time.Millisecond).String())
		expected *= time.Duration(backoff.Factor)
	}
	return all
}

func (bed *testbed) relist(ctx context.Context) error {
	bed.Printf("4. The server is down again; e is deleted and f is created; then the server no longer has these changes\n")
	bed.outage.begin()
	if err := bed.change(ctx, "e", "f"); err != nil {
		return err
	}
	bed.expire.Store(true)
	bed.outage.end()
	if err := bed.printStore(ctx, 1); err != nil {
		return err
	}
	bed.Printf("   request: GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N: 410 (simulated by this program)\n")
	bed.printLastRequest()
	bed.Printf("   It listed again, \"not older than\" its last resourceVersion. No event reports the deletion of e: Replace omits it.\n\n")
	return nil
}

// withoutStreaming runs a second reflector, on a server that rejects streaming lists.
func withoutStreaming(ctx context.Context, env *lesson.Env) error {
	env.Printf("5. Another reflector, and a server without streaming lists\n")
	bed, err := newTestbed(env)
	if err != nil {
		return err
	}
	bed.noStreaming = true
	defer bed.start(ctx)()
	if err := lesson.Until(ctx, "it watches", func() bool {
		requests := bed.requests.All()
		return len(requests) > 0 && requests[len(requests)-1].Watch()
	}); err != nil {
		return err
	}
	if err := bed.printStore(ctx, 1); err != nil {
		return err
	}
	bed.Printf("   request: the same as in 1: rejected (simulated by this program)\n")
	bed.PrintRequests(bed.requests.Take())
	bed.Printf("   A list from the server's watch cache (resourceVersion=0), which ignores the limit, and a watch.\n")
	return nil
}
