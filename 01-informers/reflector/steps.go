package main

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

// change deletes one pod and creates another.
func (bed *testbed) change(ctx context.Context, deleted, created string) {
	bed.DeletePods(ctx, deleted)
	bed.CreatePods(ctx, created)
}

func (bed *testbed) list(ctx context.Context) {
	bed.Printf("1. The start\n")
	bed.printStore(ctx, 1)
	bed.PrintRequests(bed.requests.Take())
	bed.Printf("   One request: a streaming list, which continues as a watch.\n\n")
}

func (bed *testbed) watch(ctx context.Context) {
	bed.Printf("2. b is deleted, d is created\n")
	bed.change(ctx, "b", "d")
	bed.printStore(ctx, 3)
	bed.PrintRequests(bed.requests.Take())
	last := lesson.Must(bed.Client.CoreV1().Pods(bed.Namespace).Get(ctx, "d", metav1.GetOptions{}))
	// The reflector updates it after its call of the store.
	lesson.Until(ctx, "LastSyncResourceVersion changes", func() bool {
		return bed.reflector.LastSyncResourceVersion() == last.ResourceVersion
	})
	bed.Printf("   LastSyncResourceVersion is now the resourceVersion of the last event, d's.\n\n")
}

func (bed *testbed) resume(ctx context.Context) {
	bed.Printf("3. The server is down; a is deleted and e is created\n")
	bed.outage.Begin()
	bed.change(ctx, "a", "e")
	const attempts = 4
	lesson.Until(ctx, "it retried", func() bool { return len(bed.requests.All()) >= attempts })
	tried := bed.requests.Take()[:attempts]
	bed.PrintRequests(tried)
	bed.Printf("   waited:  %s\n", strings.Join(waits(tried), ", "))
	bed.Printf("   store:   still %s: a reader gets the old state, and no error\n", strings.Join(names(bed.store.List()), " "))

	bed.Printf("   The server is up again.\n")
	bed.outage.End()
	bed.printStore(ctx, 3)
	bed.printLastRequest()
	bed.Printf("   It resumed the watch from its last resourceVersion: no list, and the deletion is an event.\n\n")
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

func (bed *testbed) relist(ctx context.Context) {
	bed.Printf("4. The server is down again; e is deleted and f is created; then the server no longer has these changes\n")
	bed.outage.Begin()
	bed.change(ctx, "e", "f")
	bed.expire.Store(true)
	bed.outage.End()
	bed.printStore(ctx, 1)
	bed.Printf("   request: GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N: an event with the error 410 (simulated by this program)\n")
	bed.printLastRequest()
	bed.Printf("   It listed again, \"not older than\" its last resourceVersion. No event reports the deletion of e: Replace omits it.\n\n")
}

// withoutStreaming runs a second reflector, on a server that rejects streaming lists.
func withoutStreaming(ctx context.Context, env *lesson.Env) {
	env.Printf("5. Another reflector, and a server without streaming lists\n")
	bed := newTestbed(env)
	bed.noStreaming = true
	defer bed.start(ctx)()
	lesson.Until(ctx, "it watches", func() bool {
		requests := bed.requests.All()
		return len(requests) > 0 && requests[len(requests)-1].Watch()
	})
	bed.printStore(ctx, 1)
	bed.Printf("   request: the same as in 1: rejected (simulated by this program)\n")
	bed.PrintRequests(bed.requests.Take())
	bed.Printf("   A list from the server's watch cache (resourceVersion=0), which ignores the limit, and a watch.\n")
}
