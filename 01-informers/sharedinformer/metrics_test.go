package main

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestAnInformerNameIsUniqueUntilItIsReleased(t *testing.T) {
	g := NewWithT(t)
	name, err := cache.NewInformerName("unique")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = cache.NewInformerName("unique")
	g.Expect(err).To(MatchError(ContainSubstring("already registered")))

	// Shutdown of the factory releases it, also if no informer was started.
	informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithInformerName(name)).Shutdown()
	again, err := cache.NewInformerName("unique")
	g.Expect(err).NotTo(HaveOccurred())
	again.Release()
}

func TestOnlyANamedInformerHasMetrics(t *testing.T) {
	g := NewWithT(t)
	cache.SetInformerMetricsProvider(metrics)
	name, err := cache.NewInformerName("with-metrics")
	g.Expect(err).NotTo(HaveOccurred())
	runOnce(t)
	g.Expect(metrics.of("")).To(BeEmpty())
	runOnce(t, informers.WithInformerName(name))
	g.Expect(metrics.of("with-metrics")).To(ContainElement("processing latency of configmaps"))
}

// runOnce starts an informer, waits until its handler has synced, and shuts it down.
func runOnce(t *testing.T, options ...informers.SharedInformerOption) {
	t.Helper()
	g := NewWithT(t)
	factory := informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(inDefault("a")), 0, options...)
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	registration, err := factory.Core().V1().ConfigMaps().TypedInformer().AddTypedEventHandler(&recorder{})
	g.Expect(err).NotTo(HaveOccurred())
	factory.StartWithContext(ctx)
	g.Expect(cache.WaitFor(ctx, "", registration.HasSyncedChecker())).To(BeTrue())
}
