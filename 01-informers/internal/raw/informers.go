package raw

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	externalversions "example.com/workbook/01-informers/internal/generated/informers/externalversions"
	informersv1alpha1 "example.com/workbook/01-informers/internal/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// factories start the informers and end them.
type factories struct {
	foos  externalversions.SharedInformerFactory
	other informers.SharedInformerFactory
}

// newFactories makes them. A resync, which would hand every object to the handlers again from time to time, is
// off: it tells nothing new of the world, and hides that a handler misses something.
func newFactories(ctx context.Context, apiServer *clients) factories {
	cache.SetInformerMetricsProvider(informerMetrics{})
	name, err := cache.NewInformerName(foo.FieldOwner)
	if err != nil {
		// Another run in the same process has it, as in tests: these informers go without metrics.
		klog.FromContext(ctx).Info("No metrics of informers", "reason", err)
	}
	return factories{
		foos: externalversions.NewSharedInformerFactoryWithOptions(apiServer.foos, 0, externalversions.WithInformerName(name)),
		other: informers.NewSharedInformerFactoryWithOptions(apiServer.kubernetes, 0,
			informers.WithInformerName(name), informers.WithTransform(foo.Reduce)),
	}
}

// start starts the informers that were asked for; they run until ctx ends.
func (f factories) start(ctx context.Context) {
	f.foos.StartWithContext(ctx)
	f.other.StartWithContext(ctx)
}

// shutdown returns when all informers have ended.
func (f factories) shutdown() {
	f.foos.Shutdown()
	f.other.Shutdown()
}

// watch has the controller's caches filled, and its queue by what changes in them. Nothing runs before the
// factories are started.
func (c *controller) watch(f factories, logger klog.Logger) error {
	foos := f.foos.Foo().V1alpha1().Foos()
	deployments := f.other.Apps().V1().Deployments()
	fooInformer, deploymentInformer := foos.TypedInformer(), deployments.TypedInformer()
	c.fooLister, c.fooIndexer = foos.Lister(), fooInformer.GetTypedIndexer()
	c.deploymentLister, c.deploymentIndexer = deployments.Lister(), deploymentInformer.GetTypedIndexer()
	c.written = newWritten(c.fooIndexer, c.deploymentIndexer, c.clock)

	// An index has to be there before the first object is.
	if err := fooInformer.AddTypedIndexers(informersv1alpha1.FooIndexers{wantedIndex: indexWanted}); err != nil {
		return fmt.Errorf("indexing Foos: %w", err)
	}
	if err := deploymentInformer.AddTypedIndexers(appsinformers.DeploymentIndexers{ownerIndex: indexOwner}); err != nil {
		return fmt.Errorf("indexing Deployments: %w", err)
	}
	fooHandler, err := fooInformer.AddTypedEventHandler(c.fooHandler(), cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return fmt.Errorf("listening to Foos: %w", err)
	}
	deploymentHandler, err := deploymentInformer.AddTypedEventHandler(c.deploymentHandler(), cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return fmt.Errorf("listening to Deployments: %w", err)
	}
	c.synced = []cache.DoneChecker{
		fooInformer.HasSyncedChecker(), fooHandler.HasSyncedChecker(),
		deploymentInformer.HasSyncedChecker(), deploymentHandler.HasSyncedChecker(),
	}
	return nil
}

// fooHandler wakes a Foo that changed, whatever it is that changed: also the status that the controller has
// just written, as a pass that waits for the cache to see it is woken by it.
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

// deploymentHandler wakes whom a Deployment may matter to: the Foo that controls it, and every Foo that wants
// its name. After an update that is also the Foo that controlled it before.
func (c *controller) deploymentHandler() appsinformers.DeploymentHandlerFuncs {
	return appsinformers.DeploymentHandlerFuncs{
		AddFunc: func(deployment *appsv1.Deployment) {
			c.wakeOwner(deployment)
			c.wakeWanting(cache.MetaObjectToName(deployment))
		},
		UpdateFunc: func(before, after *appsv1.Deployment) {
			// A new list after a broken watch comes as updates, most of which change nothing.
			if before.ResourceVersion == after.ResourceVersion {
				return
			}
			c.wakeOwner(before)
			c.wakeOwner(after)
			c.wakeWanting(cache.MetaObjectToName(after))
		},
		DeleteFunc: func(deployment appsinformers.DeletedDeployment) {
			// What a broken watch missed is known by its name only, or by an older state.
			if deployment.OptionalObj != nil {
				c.wakeOwner(deployment.OptionalObj)
			}
			c.wakeWanting(deployment.GetObjectName())
		},
	}
}

func (c *controller) wakeOwner(deployment *appsv1.Deployment) {
	if owner := foo.OwnerOf(deployment); owner != nil {
		c.queue.Add(cache.NewObjectName(deployment.Namespace, owner.Name))
	}
}

func (c *controller) wakeWanting(deployment cache.ObjectName) {
	foos, err := c.fooIndexer.ByTypedIndex(wantedIndex, deployment.String())
	if err != nil {
		// The one error there is: no index of that name.
		panic(err)
	}
	for _, f := range foos {
		c.queue.Add(keyOf(f))
	}
}
