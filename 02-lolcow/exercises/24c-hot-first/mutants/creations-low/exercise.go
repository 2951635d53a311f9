package hotfirst

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// NewHandler returns the handler of events about ConfigMaps.
func NewHandler() handler.EventHandler {
	return byLabel{}
}

// byLabel enqueues the Lolcow that a ConfigMap names in its label.
type byLabel struct{}

func (byLabel) Create(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q, true) }

func (byLabel) Update(_ context.Context, e event.UpdateEvent, q queue) {
	unchanged := e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	enqueue(e.ObjectOld, q, unchanged)
	enqueue(e.ObjectNew, q, unchanged)
}

func (byLabel) Delete(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q, false) }

func (byLabel) Generic(_ context.Context, e event.GenericEvent, q queue) { enqueue(e.Object, q, false) }

func enqueue(object client.Object, q queue, low bool) {
	name := object.GetLabels()["lolcow"]
	if name == "" {
		return
	}
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}
	priorities, found := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !found || !low {
		q.Add(request)
		return
	}
	priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
}
