package raw

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	typedv1alpha1 "example.com/workbook/01-informers/internal/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	listersv1alpha1 "example.com/workbook/01-informers/internal/generated/listers/samplecontroller/v1alpha1"
)

// controller brings the Deployments of Foos in line with their specs and reports what it observes.
type controller struct {
	// Writes go to the API server.
	foos        typedv1alpha1.FoosGetter
	deployments appsv1client.DeploymentsGetter
	recorder    events.EventRecorder

	// Reads come from the caches of the informers.
	fooLister         listersv1alpha1.FooLister
	fooIndexer        cache.TypedIndexer[*v1alpha1.Foo]
	deploymentLister  appslisters.DeploymentLister
	deploymentIndexer cache.TypedIndexer[*appsv1.Deployment]

	// queue holds keys of Foos, and not events: a reconciliation cannot depend on what triggered it.
	queue queue

	// synced is done when all objects of the start are in the caches and were delivered to the handlers.
	synced []cache.DoneChecker

	attempts *foo.Attempts
	written  *written
	clock    clock.PassiveClock
	image    string
}

// waitForSync waits until all objects of the start are in the caches and were delivered to the handlers: a cache is full
// before its last handler is called. These handlers only fill the queue, and for them the caches would do. A handler that
// builds state of its own, which reconciliations read, needs the second half. Here it is what /readyz reports: all Foos are
// in the queue.
func (c *controller) waitForSync(ctx context.Context) bool {
	return cache.WaitFor(ctx, "caches and handlers", c.synced...)
}
