package controller

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// startClients runs a manager for one namespace, and returns its client and its APIReader.
func startClients(t *testing.T, w *world, readYourWrites bool) (client.Client, client.Reader) {
	t.Helper()
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readYourWrites}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	runManager(w.ctx, t, mgr)
	w.Expect(mgr.GetCache().WaitForCacheSync(w.ctx)).To(BeTrue())
	return mgr.GetClient(), mgr.GetAPIReader()
}

// The seeds: "the scaffolded client includes a cache and may give you out-of-date data", and the APIReader does not.
// Each of 100 rounds writes a greeting and reads it at once.
func TestSeedWisdom_TheCacheIsBehind(t *testing.T) {
	t.Parallel()
	const rounds = 100
	for name, test := range map[string]struct{ readYourWrites, direct, mayBeStale bool }{
		"cache":                       {mayBeStale: true},
		"cache with read-your-writes": {readYourWrites: true},
		"APIReader":                   {direct: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c, direct := startClients(t, w, test.readYourWrites)
			var reader client.Reader = c
			if test.direct {
				reader = direct
			}
			lolcow := w.lolcow("cow", v1alpha1.LolcowSpec{})
			w.Expect(c.Create(w.ctx, lolcow)).To(Succeed())
			var seen v1alpha1.Lolcow
			// The first read makes the informer, and waits for it.
			w.Eventually(func() error { return reader.Get(w.ctx, w.key("cow"), &seen) }).WithTimeout(settleTimeout).Should(Succeed())

			stale := 0
			for i := range rounds {
				lolcow.Spec.Greeting = fmt.Sprint("Moo ", i)
				w.Expect(c.Update(w.ctx, lolcow)).To(Succeed())
				w.Expect(reader.Get(w.ctx, w.key("cow"), &seen)).To(Succeed())
				if seen.Spec.Greeting != lolcow.Spec.Greeting {
					stale++
				}
			}
			t.Logf("%d of %d reads were stale", stale, rounds)
			if !test.mayBeStale {
				w.Expect(stale).To(BeZero())
				return
			}
			w.Expect(stale).To(BeNumerically(">", 0), "a read right after a write is faster than the event")
			w.Eventually(func(g Gomega) {
				g.Expect(reader.Get(w.ctx, w.key("cow"), &seen)).To(Succeed())
				g.Expect(seen.Spec.Greeting).To(Equal(lolcow.Spec.Greeting))
			}).WithTimeout(settleTimeout).Should(Succeed(), "behind, and not wrong for ever")
		})
	}
}
