package main

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func (m *mirror) fill(ctx context.Context) error {
	m.Printf("1. It begins\n")
	if err := m.untilStore(ctx, 1); err != nil {
		return err
	}
	m.told()
	m.Printf("   One request: the list is streamed, and the watch goes on in it.\n\n")
	return nil
}

func (m *mirror) follow(ctx context.Context) error {
	m.Printf("2. b is deleted, d is created\n")
	if err := m.DeletePods(ctx, "b"); err != nil {
		return err
	}
	if err := m.CreatePods(ctx, "d"); err != nil {
		return err
	}
	if err := m.untilStore(ctx, 3); err != nil {
		return err
	}
	m.told()
	latest, err := m.Client.CoreV1().Pods(m.Namespace).Get(ctx, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := m.untilVersion(ctx, latest.ResourceVersion); err != nil {
		return err
	}
	m.Printf("   LastSyncResourceVersion is now that of the last event, d's.\n\n")
	return nil
}

// untilVersion waits for the reflector to note a version: it does so after it has written to the store.
func (m *mirror) untilVersion(ctx context.Context, version string) error {
	return until(ctx, "LastSyncResourceVersion moves on", func() bool { return m.reflector.LastSyncResourceVersion() == version })
}

func (m *mirror) outage(ctx context.Context) error {
	m.Printf("3. The server goes away; meanwhile a is deleted and e is created\n")
	m.door.shut()
	if err := m.DeletePods(ctx, "a"); err != nil {
		return err
	}
	if err := m.CreatePods(ctx, "e"); err != nil {
		return err
	}
	const attempts = 4
	if err := until(ctx, "it tried again", func() bool { return len(m.requests.All()) >= attempts }); err != nil {
		return err
	}
	tried := m.requests.Take()[:attempts]
	for _, request := range tried {
		m.Printf("   asked:  %s\n", request)
	}
	m.Printf("   waited: %s\n", strings.Join(waits(tried), ", "))
	m.Printf("   store:  as it was, %s: whoever reads it gets old answers, and no error\n", strings.Join(names(m.store.List()), " "))

	m.Printf("   It comes back.\n")
	if err := m.door.open(ctx); err != nil {
		return err
	}
	if err := m.untilStore(ctx, 3); err != nil {
		return err
	}
	asked := m.requests.Take()
	m.Printf("   asked:  %s\n", asked[len(asked)-1])
	m.Printf("   It watched on from the last version it had seen: no list, and the deletion is an event.\n\n")
	return nil
}

// waits are the times between requests. They are rounded down to what the back-off says, so that a slow
// machine prints the same.
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

func (m *mirror) forgotten(ctx context.Context) error {
	m.Printf("4. The server goes away again; meanwhile e is deleted and f is created; and it comes back having forgotten\n")
	m.door.shut()
	if err := m.DeletePods(ctx, "e"); err != nil {
		return err
	}
	if err := m.CreatePods(ctx, "f"); err != nil {
		return err
	}
	m.forgetful.Store(true)
	if err := m.door.open(ctx); err != nil {
		return err
	}
	if err := m.untilStore(ctx, 1); err != nil {
		return err
	}
	asked := m.requests.Take()
	m.Printf("   asked:  GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N: 410 (played by this program)\n")
	m.Printf("   asked:  %s\n", asked[len(asked)-1])
	m.Printf("   It listed again, \"not older than\" what it had. No event says that e is gone: Replace leaves it out.\n\n")
	return nil
}

// olderServer runs a second reflector, on a server that refuses to stream a list.
func olderServer(ctx context.Context, world *lesson.World) error {
	world.Printf("5. Another reflector, and a server that cannot stream a list\n")
	m, err := newMirror(ctx, world)
	if err != nil {
		return err
	}
	defer m.door.shut()
	m.old = true
	defer m.start(ctx)()
	if err := until(ctx, "it watches", func() bool {
		asked := m.requests.All()
		return len(asked) > 0 && asked[len(asked)-1].Watch()
	}); err != nil {
		return err
	}
	if err := m.untilStore(ctx, 1); err != nil {
		return err
	}
	m.Printf("   asked:  the same as in 1: refused (played by this program)\n")
	m.told()
	m.Printf("   A list from the server's cache (version 0), in pages where there are more than 500, and a watch.\n")
	return nil
}
