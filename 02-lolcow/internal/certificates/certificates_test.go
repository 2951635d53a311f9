package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCreation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, second := c.replica(), c.replica()
	_, err := first.Get(nil)
	c.Expect(err).To(MatchError("there is no certificate yet"))

	c.sync(first, second)
	c.Expect(c.expectTrusted(first, c.caBundle())).To(Equal(c.expectTrusted(second, c.caBundle())))
	c.Expect(c.writes).To(Equal(2), "a Secret and a caBundle")
	c.clock.Step(lifetime - renewBefore - time.Second)
	c.sync(first, second)
	c.Expect(c.writes).To(Equal(2), "nothing is due")

	c.Expect(c.crd().Spec.Conversion.Webhook.ClientConfig.Service.Name).To(Equal("webhook"), "what others own stays")
}

// Over a year, API servers that are four hours behind with the caBundle, and a replica that looks at the Secret twice a day only.
func TestRotation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	often, rarely := c.replica(), c.replica()
	c.sync(often, rarely)
	old := c.caBundle()
	served := map[string]bool{}
	for i := range 365 * 6 {
		c.clock.Step(4 * time.Hour)
		c.sync(often)
		if i%3 == 0 {
			c.sync(rarely)
		}
		c.expectTrusted(rarely, old)
		served[c.expectTrusted(often, old).SerialNumber.String()] = true
		old = c.caBundle()
	}
	c.Expect(served).To(HaveLen(7), "the first, and one each two months")
	c.Expect(bytes.Count(old, []byte("BEGIN"))).To(BeNumerically("<=", 2), "what has expired is removed")
}

// A replica that was cut off serves the old certificate until it expires, while the others serve the new one.
func TestOldCertificateIsTrustedUntilItExpires(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	connected, cutOff := c.replica(), c.replica()
	c.sync(connected, cutOff)
	expires := c.clock.Now().Add(lifetime)
	for c.clock.Step(4 * time.Hour); c.clock.Now().Before(expires); c.clock.Step(4 * time.Hour) {
		c.sync(connected)
		c.expectTrusted(cutOff, c.caBundle())
	}
	c.Expect(c.expectTrusted(connected, c.caBundle())).NotTo(Equal(cutOff.served.Load().Leaf))
}

// All replicas were stopped until after the certificate, or it and its successor, had expired.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]time.Duration{
		"before the successor is made": lifetime, "before the successor is served": 2 * lifetime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			replica := c.replica()
			c.sync(replica)
			expired := replica.served.Load().Leaf
			if stopped > lifetime {
				c.clock.Step(lifetime - renewBefore)
				c.sync(replica)
				c.Expect(c.secret().Data).To(HaveKey(keyNextCertificate))
			}
			c.clock.Step(stopped)
			c.sync(replica)
			c.Expect(c.expectTrusted(replica, c.caBundle())).NotTo(Equal(expired))
			c.Expect(c.caBundle()).To(Equal(c.secret().Data[keyCertificate]), "nothing that has expired is trusted")
		})
	}
}

// The successor is served early, if there is nothing else.
func TestSuccessorIsServedWhenTheCertificateExpires(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.sync(c.replica())
	c.clock.Step(lifetime - time.Hour)
	c.sync(c.replica())
	successor := c.secret().Data[keyNextCertificate]
	c.clock.Step(time.Hour)
	replica := c.replica()
	c.sync(replica)
	c.Expect(c.secret().Data[keyCertificate]).To(Equal(successor))
	c.expectTrusted(replica, c.caBundle())
}

// Two replicas find that the Secret is due, and one of them is faster.
func TestAnotherReplicaWritesTheSecretAtOnce(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{
		"creation": 0, "the successor": lifetime - renewBefore, "expiry": lifetime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if age > 0 {
				c.sync(c.replica())
				c.clock.Step(age)
			}
			slow, fast := c.replica(), c.replica()
			c.beforeWrite = func() {
				c.beforeWrite = func() {}
				c.sync(fast)
			}
			c.sync(slow)
			written := c.secret()
			c.Expect(c.expectTrusted(slow, c.caBundle())).To(Equal(c.expectTrusted(fast, c.caBundle())))
			c.sync(slow, fast)
			c.Expect(c.secret()).To(Equal(written))
		})
	}
}

// If others write all the time, it gives up, and goes on serving.
func TestOthersWriteTheSecretAllTheTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	replica := c.replica()
	c.sync(replica)
	before := replica.served.Load()
	c.clock.Step(lifetime - renewBefore)
	c.beforeWrite = func() {
		c.writes++
		secret := c.secret()
		secret.Labels = map[string]string{"writes": fmt.Sprint(c.writes)}
		c.Expect(c.Patch(t.Context(), secret, client.Merge)).To(Succeed())
	}
	c.Expect(replica.Sync(t.Context())).To(MatchError(ContainSubstring("renewing Secret system/certificate: ")))
	c.Expect(replica.served.Load()).To(BeIdenticalTo(before))
}

// What cannot be used is replaced, whatever it is, and what can be used stays.
func TestSecretWithRubbish(t *testing.T) {
	t.Parallel()
	rubbish := []byte("rubbish")
	for name, test := range map[string]struct {
		change   func(data, other map[string][]byte)
		replaced bool
	}{
		"no data":                        {func(data, _ map[string][]byte) { clear(data) }, true},
		"no certificate":                 {func(data, _ map[string][]byte) { data[keyCertificate] = rubbish }, true},
		"no private key":                 {func(data, _ map[string][]byte) { data[keyPrivate] = nil }, true},
		"the private key of another":     {func(data, other map[string][]byte) { data[keyPrivate] = other[keyPrivate] }, true},
		"no bundle":                      {func(data, _ map[string][]byte) { data[keyBundle] = rubbish }, false},
		"a bundle with something before": {func(data, _ map[string][]byte) { data[keyBundle] = append(rubbish, data[keyBundle]...) }, false},
		"a bundle with another PEM":      {func(data, _ map[string][]byte) { data[keyBundle] = data[keyPrivate] }, false},
		"a successor that is none":       {func(data, _ map[string][]byte) { data[keyNextCertificate], data[keyNextPrivate] = rubbish, rubbish }, false},
		"another key":                    {func(data, _ map[string][]byte) { data["rubbish"] = rubbish }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := newCluster(t)
			other.sync(other.replica())
			c := newCluster(t)
			c.sync(c.replica())
			before := c.secret()
			changed := before.DeepCopy()
			test.change(changed.Data, other.secret().Data)
			c.Expect(c.Update(t.Context(), changed)).To(Succeed())

			replica := c.replica()
			c.sync(replica)
			c.expectTrusted(replica, c.caBundle())
			c.Expect(c.secret().Data[keyCertificate]).NotTo(BeEmpty())
			c.Expect(bytes.Equal(c.secret().Data[keyCertificate], before.Data[keyCertificate])).NotTo(Equal(test.replaced))
			if !test.replaced {
				c.Expect(c.secret().Data).To(Equal(before.Data))
			}
		})
	}
}

// The Service has another name after an installation under another prefix.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other := c.replica()
	other.DNSNames = []string{"other.system.svc"}
	c.sync(other)
	replica := c.replica()
	c.sync(replica)
	c.expectTrusted(replica, c.caBundle())
}

// An update that replaces the CRD removes caBundle with it.
func TestCABundleIsWrittenAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	replica := c.replica()
	c.sync(replica)
	crd := c.crd()
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	c.Expect(c.Update(t.Context(), crd)).To(Succeed())
	var log []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}))
	for range 2 {
		c.Expect(replica.Sync(ctx)).To(Succeed())
		c.expectTrusted(replica, c.caBundle())
	}
	c.Expect(log).To(ConsistOf(ContainSubstring(`"msg"="Wrote caBundle" "crd"="lolcows.my.domain"`)), "an administrator can see that another client removes it")
}

// A certificate that the CRD does not trust is not served.
func TestCRDWithoutWebhook(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	crd := c.crd()
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	c.Expect(c.Update(t.Context(), crd)).To(Succeed())
	replica := c.replica()
	c.Expect(replica.Sync(t.Context())).To(MatchError(ContainSubstring("CRD lolcows.my.domain has no conversion webhook")))
	_, err := replica.Get(&tls.ClientHelloInfo{})
	c.Expect(err).To(HaveOccurred())
	c.Expect(c.Delete(t.Context(), crd)).To(Succeed())
	c.Expect(replica.Sync(t.Context())).To(MatchError(ContainSubstring("reading CRD lolcows.my.domain: ")))
}

// Run calls Sync in each period, and goes on after an error.
func TestRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	replica := c.replica()
	c.sync(replica)
	first := replica.served.Load()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	synced := make(chan struct{}, 1)
	failing := true
	replica.Reader = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if failing {
				failing = false
				synced <- struct{}{}
				return errors.New("the API server is not available")
			}
			return w.Get(ctx, key, object, options...)
		},
	})
	go func() { replica.Run(ctx); close(ended) }()
	c.Eventually(c.clock.HasWaiters).Should(BeTrue())
	c.clock.Step(lifetime)
	c.Eventually(synced).Should(Receive())
	c.Expect(replica.served.Load()).To(BeIdenticalTo(first))
	c.Eventually(func() *tls.Certificate {
		c.clock.Step(period)
		return replica.served.Load()
	}).ShouldNot(BeIdenticalTo(first))
	stop()
	c.Eventually(ended).Should(BeClosed())
}
