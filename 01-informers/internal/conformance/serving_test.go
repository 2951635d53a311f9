package conformance

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/testserver"
)

// An operator serves probes, also while it is not the leader, and metrics to callers with the permission.
func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		probes, metrics := testserver.FreeAddress(e.t), testserver.FreeAddress(e.t)
		running := e.start(elect, func(o *operator.Options) { o.ProbeAddress, o.MetricsAddress = probes, metrics })
		for _, path := range []string{"/healthz", "/readyz"} {
			e.Eventually(func() int {
				code, _ := get(e.ctx, "http://"+probes+path, "")
				return code
			}).WithTimeout(e.Soon).Should(Equal(http.StatusOK), path)
		}
		e.createReady("web", "web-server")

		url := "https://" + metrics + "/metrics"
		// It takes a moment to create a certificate.
		e.Eventually(func() int {
			code, _ := get(e.ctx, url, "")
			return code
		}).WithTimeout(e.Soon).ShouldNot(BeZero())
		code, _ := get(e.ctx, url, "")
		e.Expect(code).To(Equal(http.StatusUnauthorized), "without a token")
		code, _ = get(e.ctx, url, "nonsense")
		// With controller-runtime it is 500 (pkg/metrics/filters/filters.go).
		e.Expect(code).To(BeElementOf(http.StatusUnauthorized, http.StatusInternalServerError), "with an invalid token")
		_, unbound := testserver.Token(e.t, e.Namespace, "unbound")
		code, _ = get(e.ctx, url, unbound)
		e.Expect(code).To(Equal(http.StatusForbidden), "with a token, and without the permission")
		user, reader := testserver.Token(e.t, e.Namespace, "reader")
		testserver.Allow(e.t, user, rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
		// A decision is cached, also if it is negative.
		e.Eventually(func(g Gomega) {
			code, body := get(e.ctx, url, reader)
			g.Expect(code).To(Equal(http.StatusOK))
			g.Expect(body).To(And(
				ContainSubstring("workqueue_adds_total{"), ContainSubstring("rest_client_requests_total{"),
				ContainSubstring("leader_election_master_status{"), ContainSubstring("go_goroutines ")))
		}).WithTimeout(e.Soon).WithPolling(time.Second).Should(Succeed())

		running.Stop(e.t)
		code, _ = get(e.ctx, "http://"+probes+"/healthz", "")
		e.Expect(code).To(BeZero(), "the server is stopped")
	})
}

// An operator ends with an error if an address is in use.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		used, err := new(net.ListenConfig).Listen(e.ctx, "tcp", "127.0.0.1:0")
		e.Expect(err).NotTo(HaveOccurred())
		defer used.Close()
		for _, set := range []func(*operator.Options){
			func(o *operator.Options) { o.ProbeAddress = used.Addr().String() },
			func(o *operator.Options) { o.MetricsAddress = used.Addr().String() },
		} {
			e.Expect(e.start(set).Wait()).To(MatchError(ContainSubstring("address already in use")))
		}
	})
}

// An operator ends with an error at the start if waiting does not help.
func TestStartFails(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		_, unbound := testserver.Token(e.t, e.Namespace, "unbound")
		for what, test := range map[string]struct {
			config func(*rest.Config)
			want   string // matches a part of the message
		}{
			"no cluster":    {func(c *rest.Config) { c.Host = "https://" + testserver.FreeAddress(e.t) }, "connection refused"},
			"no such user":  {func(c *rest.Config) { c.BearerToken = "nonsense" }, "Unauthorized|provide credentials"},
			"no permission": {func(c *rest.Config) { c.BearerToken = unbound }, "cannot list resource"},
			"no CRD":        {func(c *rest.Config) { c.Wrap(withoutFoos) }, "make install"},
			"no such host":  {func(c *rest.Config) { c.Host = "https://no-such-host.invalid" }, "no-such-host.invalid"},
		} {
			running := inprocess.Start(e.t, e.account, inprocess.Settings{Implementation: e.implementation, Config: test.config})
			e.Eventually(running.Done()).WithTimeout(e.Soon).Should(BeClosed(), what)
			e.Expect(running.Wait()).To(MatchError(MatchRegexp(test.want)), what)
		}
	})
}

// withoutFoos is a transport to a server without the CRD of Foo.
func withoutFoos(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/foos") {
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
		}
		return next.RoundTrip(request)
	})
}

// get returns the code and the body of a response; 0 if there was none.
func get(ctx context.Context, url, token string) (int, string) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is self-signed
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, ""
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(body)
}
