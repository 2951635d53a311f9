package hotfirst

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
)

type keys = workqueue.TypedRateLimitingInterface[reconcile.Request]

func configMap(lolcow, resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "text", Namespace: "default", ResourceVersion: resourceVersion, Labels: map[string]string{"lolcow": lolcow},
	}}
}

func updateEvent(before, now *corev1.ConfigMap) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: now}
}

// expectPriority calls the handler with a queue of its own, and asserts the priority of the key.
func expectPriority(b *check.B, entry Entry, what string, want int, happens func(h handler.EventHandler, q keys)) {
	q := priorityqueue.New[reconcile.Request]("hot-first")
	b.Cleanup(q.ShutDown)
	b.Event("the handler is called with %s", what)
	happens(entry(), q)
	type result struct {
		priority int
		shutdown bool
	}
	results := make(chan result, 1)
	go func() {
		_, priority, shutdown := q.GetWithPriority()
		results <- result{priority, shutdown}
	}()
	b.Eventually(patience, func() string {
		select {
		case got := <-results:
			if got.priority != want {
				b.Fatalf("the key of %s has the priority %d, and should have %d", what, got.priority, want)
			}
			return ""
		default:
			return what + " enqueues nothing"
		}
	})
}

// expectPlain calls the handler with a queue that has no priorities.
func expectPlain(b *check.B, entry Entry) {
	same := configMap("cow", "7")
	for _, c := range []struct {
		what    string
		want    int
		happens func(h handler.EventHandler, q keys)
	}{
		{"the first list", 1, func(h handler.EventHandler, q keys) {
			h.Create(b.Context(), event.CreateEvent{Object: same, IsInInitialList: true}, q)
		}},
		{"an update", 1, func(h handler.EventHandler, q keys) {
			h.Update(b.Context(), updateEvent(same, configMap("cow", "8")), q)
		}},
		{"a change of the label", 2, func(h handler.EventHandler, q keys) {
			h.Update(b.Context(), updateEvent(same, configMap("calf", "8")), q)
		}},
		{"a resync", 1, func(h handler.EventHandler, q keys) { h.Update(b.Context(), updateEvent(same, same), q) }},
		{"a deletion", 1, func(h handler.EventHandler, q keys) { h.Delete(b.Context(), event.DeleteEvent{Object: same}, q) }},
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		b.Cleanup(q.ShutDown)
		b.Event("the handler is called with %s, and a queue without priorities", c.what)
		c.happens(entry(), q)
		if q.Len() != c.want {
			b.Fatalf("a queue without priorities has %d keys after %s, and should have %d", q.Len(), c.what, c.want)
		}
	}
}
