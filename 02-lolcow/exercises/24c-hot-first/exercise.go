//go:build start

package hotfirst

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// NewHandler returns the handler of events about ConfigMaps.
func NewHandler() handler.EventHandler {
	// TODO: what a user changes waits for all that the first list brings.
	return byLabel{}
}

// byLabel enqueues the Lolcow that a ConfigMap names in its label.
type byLabel struct{}

func (byLabel) Create(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) }

func (byLabel) Update(_ context.Context, e event.UpdateEvent, q queue) {
	enqueue(e.ObjectOld, q)
	enqueue(e.ObjectNew, q)
}

func (byLabel) Delete(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) }

func (byLabel) Generic(_ context.Context, e event.GenericEvent, q queue) { enqueue(e.Object, q) }

func enqueue(object client.Object, q queue) {
	if name := object.GetLabels()["lolcow"]; name != "" {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}})
	}
}
