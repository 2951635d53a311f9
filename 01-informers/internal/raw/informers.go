package raw

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	externalversions "example.com/workbook/01-informers/internal/generated/informers/externalversions"
	informersv1alpha1 "example.com/workbook/01-informers/internal/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// factories start the informers and shut them down.
type factories struct {
	foos  externalversions.SharedInformerFactory
	other informers.SharedInformerFactory
}

// newFactories returns factories without a resync, which would deliver every object to the handlers again from time to time:
// that delivers nothing new, and hides the mistake of a handler that misses an event.
func newFactories(ctx context.Context, apiServer *clients) factories {
	cache.SetInformerMetricsProvider(informerMetrics{})
	name, err := cache.NewInformerName(foo.FieldOwner)
	if err != nil {
		// Another run in the same process has the name, as in tests. These informers have no metrics.
		klog.FromContext(ctx).Info("No metrics of informers", "reason", err)
	}
	return factories{
		foos: externalversions.NewSharedInformerFactoryWithOptions(apiServer.foos, 0, externalversions.WithInformerName(name)),
		other: informers.NewSharedInformerFactoryWithOptions(apiServer.kubernetes, 0,
			informers.WithInformerName(name), informers.WithTransform(foo.Transform)),
	}
}

// start starts the informers that watch has requested. They run until ctx ends.
func (f factories) start(ctx context.Context) {
	f.foos.StartWithContext(ctx)
	f.other.StartWithContext(ctx)
}

// shutdown returns when all informers have ended.
func (f factories) shutdown() {
	f.foos.Shutdown()
	f.other.Shutdown()
}

// watch sets up the informers that fill the controller's caches, and the handlers that fill its queue. Nothing runs before
// the factories are started.
func (c *controller) watch(f factories, logger klog.Logger) error {
	foos := f.foos.Foo().V1alpha1().Foos()
	deployments := f.other.Apps().V1().Deployments()
	fooInformer, deploymentInformer := foos.TypedInformer(), deployments.TypedInformer()
	c.fooLister, c.fooIndexer = foos.Lister(), fooInformer.GetTypedIndexer()
	c.deploymentLister, c.deploymentIndexer = deployments.Lister(), deploymentInformer.GetTypedIndexer()
	c.written = newWritten(c.fooIndexer, c.deploymentIndexer, c.clock)

	// An index must exist before the first object is in the cache.
	if err := fooInformer.AddTypedIndexers(informersv1alpha1.FooIndexers{deploymentNameIndex: indexDeploymentName}); err != nil {
		return fmt.Errorf("indexing Foos: %w", err)
	}
	if err := deploymentInformer.AddTypedIndexers(appsinformers.DeploymentIndexers{ownerIndex: indexOwner}); err != nil {
		return fmt.Errorf("indexing Deployments: %w", err)
	}
	fooHandler, err := fooInformer.AddTypedEventHandler(c.fooHandler(), cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return fmt.Errorf("adding a handler for Foos: %w", err)
	}
	deploymentHandler, err := deploymentInformer.AddTypedEventHandler(c.deploymentHandler(), cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return fmt.Errorf("adding a handler for Deployments: %w", err)
	}
	c.synced = []cache.DoneChecker{
		fooInformer.HasSyncedChecker(), fooHandler.HasSyncedChecker(),
		deploymentInformer.HasSyncedChecker(), deploymentHandler.HasSyncedChecker(),
	}
	return nil
}

const (
	// ownerIndex finds the Deployments that an object is the controller of, by that object's uid.
	ownerIndex = "controller-uid"
	// deploymentNameIndex finds the Foos whose spec names a Deployment, by its namespace and name.
	deploymentNameIndex = "deploymentName"
)

func indexOwner(deployment *appsv1.Deployment) ([]string, error) {
	if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func indexDeploymentName(f *v1alpha1.Foo) ([]string, error) {
	return []string{cache.NewObjectName(f.Namespace, f.Spec.DeploymentName).String()}, nil
}

// keyOf is the key of a Foo in the queue.
func keyOf(f *v1alpha1.Foo) cache.ObjectName { return cache.MetaObjectToName(f) }

// fooHandler enqueues a Foo that changed, also if only its status did: a reconciliation may wait until the cache has the status
// that the controller has just written.
func (c *controller) fooHandler() informersv1alpha1.FooHandlerFuncs {
	return informersv1alpha1.FooHandlerFuncs{
		AddFunc: func(f *v1alpha1.Foo) { c.queue.Add(keyOf(f)) },
		UpdateFunc: func(before, after *v1alpha1.Foo) {
			if before.ResourceVersion != after.ResourceVersion {
				c.queue.Add(keyOf(after))
			}
		},
		DeleteFunc: func(f informersv1alpha1.DeletedFoo) { c.queue.Add(f.GetObjectName()) },
	}
}

// deploymentHandler enqueues the Foo that is the controller of a Deployment, and every Foo whose spec has its name. After an
// update it also enqueues the Foo that was the controller before.
func (c *controller) deploymentHandler() appsinformers.DeploymentHandlerFuncs {
	return appsinformers.DeploymentHandlerFuncs{
		AddFunc: func(deployment *appsv1.Deployment) {
			c.enqueueOwner(deployment)
			c.enqueueByName(cache.MetaObjectToName(deployment))
		},
		UpdateFunc: func(before, after *appsv1.Deployment) {
			// A new list after a broken watch is delivered as updates, most of which change nothing.
			if before.ResourceVersion == after.ResourceVersion {
				return
			}
			c.enqueueOwner(before)
			c.enqueueOwner(after)
			c.enqueueByName(cache.MetaObjectToName(after))
		},
		DeleteFunc: func(deployment appsinformers.DeletedDeployment) {
			// For a deletion that a broken watch missed, only the name or an older state is known.
			if deployment.OptionalObj != nil {
				c.enqueueOwner(deployment.OptionalObj)
			}
			c.enqueueByName(deployment.GetObjectName())
		},
	}
}

func (c *controller) enqueueOwner(deployment *appsv1.Deployment) {
	if owner := foo.OwnerOf(deployment); owner != nil {
		c.queue.Add(cache.NewObjectName(deployment.Namespace, owner.Name))
	}
}

func (c *controller) enqueueByName(deployment cache.ObjectName) {
	foos, err := c.fooIndexer.ByTypedIndex(deploymentNameIndex, deployment.String())
	if err != nil {
		// The only error: there is no index of that name.
		panic(err)
	}
	for _, f := range foos {
		c.queue.Add(keyOf(f))
	}
}
