package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A read that waits for the cache, in an event handler, keeps all later events back: for ever, if the watch of Lolcows
// hangs.
func TestEventHandlersDoNotWaitForTheCache(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var options client.ListOptions
	c := interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, given ...client.ListOption) error {
			options.ApplyOptions(given)
			return nil
		},
	})
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	NewLolcowReconciler(c, nil, nil, serverImage).enqueueWaitingFor(t.Context(), 30000, q)
	g.Expect(options.DisableReadYourWritesConsistency).To(BeTrue())
}
