package faults

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/testserver"
	"example.com/workbook/shared/faults/wire"
)

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// TestCredentials asserts that the proxy changes no client's identity: a client that sends credentials does not get
// those of the proxy.
func TestCredentials(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	proxy := newProxy(t)
	g.Expect(whoAmI(t.Context(), t, proxy.Config())).To(Equal("admin"))

	account := inprocess.NewAccount(t)
	config := account.Config()
	proxy.Route(config)
	g.Expect(whoAmI(t.Context(), t, config)).To(Equal(account.User))

	config.BearerToken = "wrong"
	_, err := whoAmI(t.Context(), t, config)
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
}

func whoAmI(ctx context.Context, t *testing.T, config *rest.Config) (string, error) {
	t.Helper()
	review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// newProxy starts a proxy in front of the API server until the end of the test.
func newProxy(t *testing.T) *wire.Proxy {
	t.Helper()
	proxy, err := wire.New(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

func TestRules(t *testing.T) {
	t.Parallel()
	g, ctx := NewWithT(t), t.Context()
	proxy := newProxy(t)
	config := proxy.Config()
	clients := clientFor(t, config)
	list := func() error {
		_, err := clients.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	}
	g.Expect(list()).To(Succeed())

	injection := proxy.Inject(wire.Rule{Fault: wire.Gone, Verb: "list", Resource: "configmaps", Times: 2})
	_, err := clients.CoreV1().ConfigMaps("default").Get(ctx, "none", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "another verb")
	_, err = clients.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "another resource")
	g.Expect(apierrors.IsResourceExpired(list())).To(BeTrue())
	g.Expect(apierrors.IsResourceExpired(list())).To(BeTrue())
	g.Expect(list()).To(Succeed(), "it was injected twice")
	g.Expect(injection.Count()).To(Equal(2))

	injection = proxy.Inject(wire.Rule{Fault: wire.InternalError})
	g.Expect(apierrors.IsInternalError(list())).To(BeTrue())
	injection.Stop()
	g.Expect(list()).To(Succeed())

	injection = proxy.Inject(wire.Rule{Fault: wire.TooManyRequests, Times: 1})
	g.Expect(apierrors.IsTooManyRequests(list())).To(BeTrue())
	injection.Stop()

	// client-go retries by itself if the response says when: IsNextRetry in rest/with_retry.go.
	start, before := time.Now(), len(proxy.Requests())
	proxy.Inject(wire.Rule{Fault: wire.TooManyRequests, RetryAfter: time.Second, Times: 2})
	g.Expect(list()).To(Succeed())
	g.Expect(time.Since(start)).To(BeNumerically(">=", 2*time.Second))
	g.Expect(proxy.Requests()).To(HaveLen(before+3), "each retry counts")

	_, err = clients.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxy.Requests().Of("watch", "")).To(HaveLen(1))
}
