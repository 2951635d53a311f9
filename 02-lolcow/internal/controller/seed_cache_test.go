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
func startClients(t *testing.T, f *testEnv, readYourWrites bool) (client.Client, client.Reader) {
	t.Helper()
	mgr, err := ctrl.NewManager(f.config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readYourWrites}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	f.Expect(err).NotTo(HaveOccurred())
	runManager(f.ctx, t, mgr)
	f.Expect(mgr.GetCache().WaitForCacheSync(f.ctx)).To(BeTrue())
	return mgr.GetClient(), mgr.GetAPIReader()
}

// Lolcow's author quotes: "the scaffolded client includes a cache and may give you out-of-date data", and the APIReader does not.
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
			f := newTestEnv(t)
			c, direct := startClients(t, f, test.readYourWrites)
			var reader client.Reader = c
			if test.direct {
				reader = direct
			}
			lolcow := f.lolcow("cow", v1alpha1.LolcowSpec{})
			f.Expect(c.Create(f.ctx, lolcow)).To(Succeed())
			var seen v1alpha1.Lolcow
			// The first read makes the informer, and waits for it.
			f.Eventually(func() error { return reader.Get(f.ctx, f.key("cow"), &seen) }).WithTimeout(settleTimeout).Should(Succeed())

			stale := 0
			for i := range rounds {
				lolcow.Spec.Greeting = fmt.Sprint("Moo ", i)
				f.Expect(c.Update(f.ctx, lolcow)).To(Succeed())
				f.Expect(reader.Get(f.ctx, f.key("cow"), &seen)).To(Succeed())
				if seen.Spec.Greeting != lolcow.Spec.Greeting {
					stale++
				}
			}
			t.Logf("%s: %d of %d reads were stale", name, stale, rounds)
			if !test.mayBeStale {
				f.Expect(stale).To(BeZero())
				return
			}
			f.Expect(stale).To(BeNumerically(">", 0), "a read right after a write is faster than the event")
			f.Eventually(func(g Gomega) {
				g.Expect(reader.Get(f.ctx, f.key("cow"), &seen)).To(Succeed())
				g.Expect(seen.Spec.Greeting).To(Equal(lolcow.Spec.Greeting))
			}).WithTimeout(settleTimeout).Should(Succeed(), "behind, and not wrong for ever")
		})
	}
}
