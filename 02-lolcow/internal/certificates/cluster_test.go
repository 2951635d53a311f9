package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	dnsName = "webhook.system.svc"
	crdName = "lolcows.my.domain"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	os.Exit(m.Run())
}

// cluster is what the replicas of an operator share.
type cluster struct {
	*WithT
	client.WithWatch
	t      *testing.T
	clock  *testclock.FakeClock
	writes int
	// beforeWrite is called before each write of a Secret, and beforeApply before each of a caBundle.
	beforeWrite, beforeApply func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{WithT: NewWithT(t), t: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), beforeWrite: func() {}, beforeApply: func() {}}
	scheme := runtime.NewScheme()
	c.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))).To(Succeed())
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName, UID: "1"}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "system", Name: "webhook"}},
		},
	}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			c.beforeWrite()
			c.writes++
			return w.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			c.beforeWrite()
			c.writes++
			return w.Update(ctx, object, options...)
		},
		Apply: func(ctx context.Context, w client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			c.beforeApply()
			c.writes++
			return w.Apply(ctx, object, options...)
		},
	}).Build()
	return c
}

// replica is one replica of the operator.
func (c *cluster) replica() *Certificates {
	return &Certificates{
		Reader: c, Writer: c, Clock: c.clock, CRDs: []string{crdName}, DNSNames: []string{dnsName},
		Secret: types.NamespacedName{Namespace: "system", Name: "certificate"},
	}
}

func (c *cluster) sync(replicas ...*Certificates) {
	c.t.Helper()
	for _, replica := range replicas {
		c.Expect(replica.Sync(c.t.Context())).To(Succeed())
	}
}

func (c *cluster) secret() *corev1.Secret {
	var secret corev1.Secret
	c.Expect(c.Get(c.t.Context(), client.ObjectKey{Namespace: "system", Name: "certificate"}, &secret)).To(Succeed())
	return &secret
}

func (c *cluster) crd() *apiextensionsv1.CustomResourceDefinition {
	var crd apiextensionsv1.CustomResourceDefinition
	c.Expect(c.Get(c.t.Context(), client.ObjectKey{Name: crdName}, &crd)).To(Succeed())
	return &crd
}

// caBundle is what the API servers trust.
func (c *cluster) caBundle() []byte { return c.crd().Spec.Conversion.Webhook.ClientConfig.CABundle }

// expectTrusted checks what an API server with this caBundle checks, and returns the certificate.
func (c *cluster) expectTrusted(replica *Certificates, caBundle []byte) *x509.Certificate {
	c.t.Helper()
	served, err := replica.Get(nil)
	c.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caBundle)
	_, err = served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: dnsName, CurrentTime: c.clock.Now()})
	c.Expect(err).NotTo(HaveOccurred(), "at %v", c.clock.Now())
	return served.Leaf
}
