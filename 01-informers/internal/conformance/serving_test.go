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
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/testserver"
)

// An operator tells the kubelet how it is, also while it is not the leader, and its metrics to those who may
// read them, and to no one else.
func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			probes, metrics := freeAddress(t), freeAddress(t)
			running := w.start(elect, func(o *operator.Options) { o.ProbeAddress, o.MetricsAddress = probes, metrics })
			for _, path := range []string{"/healthz", "/readyz"} {
				w.Eventually(func() int {
					code, _ := get(t.Context(), "http://"+probes+path, "")
					return code
				}).WithTimeout(w.Soon).Should(Equal(http.StatusOK), path)
			}
			w.createReady("web", "web-server")

			url := "https://" + metrics + "/metrics"
			// It takes a moment to make a certificate.
			w.Eventually(func() int {
				code, _ := get(t.Context(), url, "")
				return code
			}).WithTimeout(w.Soon).ShouldNot(BeZero())
			code, _ := get(t.Context(), url, "")
			w.Expect(code).To(Equal(http.StatusUnauthorized), "without a token")
			code, _ = get(t.Context(), url, "nonsense")
			// controller-runtime calls it 500 (pkg/metrics/filters/filters.go).
			w.Expect(code).To(BeElementOf(http.StatusUnauthorized, http.StatusInternalServerError), "with a token that is none")
			code, _ = get(t.Context(), url, w.token("outsider"))
			w.Expect(code).To(Equal(http.StatusForbidden), "with a token, but without the right")
			w.allowMetrics("reader")
			reader := w.token("reader")
			// A refusal is remembered for a while, so the first question is not asked too early.
			w.Eventually(func(g Gomega) {
				code, body := get(t.Context(), url, reader)
				g.Expect(code).To(Equal(http.StatusOK))
				g.Expect(body).To(And(
					ContainSubstring("workqueue_adds_total{"), ContainSubstring("rest_client_requests_total{"),
					ContainSubstring("leader_election_master_status{"), ContainSubstring("go_goroutines ")))
			}).WithTimeout(w.Soon).WithPolling(time.Second).Should(Succeed())

			running.Stop(t)
			code, _ = get(t.Context(), "http://"+probes+"/healthz", "")
			w.Expect(code).To(BeZero(), "nobody listens any more")
		})
	}
}

// An address that is taken is an error, and the operator ends.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			w.Expect(err).NotTo(HaveOccurred())
			defer taken.Close()
			for _, set := range []func(*operator.Options){
				func(o *operator.Options) { o.ProbeAddress = taken.Addr().String() },
				func(o *operator.Options) { o.MetricsAddress = taken.Addr().String() },
			} {
				w.Expect(w.start(set).Wait()).To(MatchError(ContainSubstring("address already in use")))
			}
		})
	}
}

// What will not come right by itself is an error at the start, and says what it is.
func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			nobody := w.token("nobody")
			for what, test := range map[string]struct {
				config func(*rest.Config)
				want   string // matches a part of the message
			}{
				"no cluster":      {func(c *rest.Config) { c.Host = "https://" + freeAddress(t) }, "connection refused"},
				"no such user":    {func(c *rest.Config) { c.BearerToken = "nonsense" }, "Unauthorized|provide credentials"},
				"no rights":       {func(c *rest.Config) { c.BearerToken = nobody }, "cannot list resource"},
				"no such kind":    {func(c *rest.Config) { c.Wrap(withoutFoos) }, "make install"},
				"not even a host": {func(c *rest.Config) { c.Host = "https://no-such-host.invalid" }, "no-such-host.invalid"},
			} {
				running := inprocess.Start(t, w.account, inprocess.Settings{Implementation: implementation, Config: test.config})
				w.Eventually(running.Done()).WithTimeout(w.Soon).Should(BeClosed(), what)
				w.Expect(running.Wait()).To(MatchError(MatchRegexp(test.want)), what)
			}
		})
	}
}

// withoutFoos is a way to a server that has not heard of Foos.
func withoutFoos(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/foos") {
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
		}
		return next.RoundTrip(request)
	})
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get returns the code and the body of an answer; 0 if there was none.
func get(ctx context.Context, url, token string) (int, string) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is made on the spot
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, ""
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(body)
}

// token makes a ServiceAccount and returns a token of it.
func (w *trial) token(name string) string {
	accounts := testserver.Client(w.t).CoreV1().ServiceAccounts(w.Namespace)
	_, err := accounts.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	token, err := accounts.CreateToken(w.ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// allowMetrics lets a ServiceAccount read metrics.
func (w *trial) allowMetrics(name string) {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-metrics"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	w.Expect(w.Client.Create(w.ctx, role)).To(Succeed())
	w.Expect(w.Client.Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: name}},
	})).To(Succeed())
}
