package raw

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/internal/testserver"
)

// tokenOf creates a ServiceAccount and returns a token of it.
func tokenOf(t *testing.T, namespace, name string) string {
	t.Helper()
	g := NewWithT(t)
	accounts := testserver.Client(t).CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// allowMetrics gives a ServiceAccount the permission to get /metrics until the returned function is called.
func allowMetrics(t *testing.T, namespace, name string) (revoke func()) {
	t.Helper()
	g := NewWithT(t)
	rbac, full := testserver.Client(t).RbacV1(), namespace+"-"+name
	_, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: full},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: full},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: full},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return func() {
		g.Expect(rbac.ClusterRoleBindings().Delete(t.Context(), full, metav1.DeleteOptions{})).To(Succeed())
	}
}

// get sends a handler a GET request with an Authorization header.
func get(t *testing.T, handler http.Handler, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func TestMetricsNeedAPermission(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	allowed, unbound := tokenOf(t, namespace, "allowed"), tokenOf(t, namespace, "unbound")
	allowMetrics(t, namespace, "allowed")
	clock := testclock.NewFakePassiveClock(time.Now())
	metrics := metricsHandler(newAuthFilter(testserver.Client(t), clock))

	for name, test := range map[string]struct {
		path, authorization string
		want                int
	}{
		"no header":               {"/metrics", "", http.StatusUnauthorized},
		"an unknown token":        {"/metrics", "Bearer made-up", http.StatusUnauthorized},
		"no token":                {"/metrics", "Bearer ", http.StatusUnauthorized},
		"another scheme":          {"/metrics", "Basic " + allowed, http.StatusUnauthorized},
		"a token and no scheme":   {"/metrics", allowed, http.StatusUnauthorized},
		"no permission":           {"/metrics", "Bearer " + unbound, http.StatusForbidden},
		"another path":            {"/metrics/cadvisor", "Bearer " + allowed, http.StatusNotFound},
		"the scheme in lowercase": {"/metrics", "bearer " + unbound, http.StatusForbidden},
	} {
		response := get(t, metrics, test.path, test.authorization)
		g.Expect(response.Code).To(Equal(test.want), name)
		g.Expect(response.Body.String()).NotTo(ContainSubstring("workqueue"), name)
	}
	g.Eventually(func(g Gomega) {
		// The server's authorizer receives a new binding through a watch, and decisions are cached.
		clock.SetTime(clock.Now().Add(decisionTTL + 1))
		response := get(t, metrics, "/metrics", "Bearer "+allowed)
		g.Expect(response.Code).To(Equal(http.StatusOK))
		g.Expect(response.Body.String()).To(ContainSubstring("go_goroutines"))
	}).WithTimeout(20 * time.Second).Should(Succeed())
}

// counted counts the requests to the server.
type counted struct {
	http.RoundTripper
	count int
}

func (c *counted) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count++
	return c.RoundTripper.RoundTrip(request)
}

func TestDecisionIsCachedForAWhile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	token := tokenOf(t, namespace, "reader")
	revoke := allowMetrics(t, namespace, "reader")
	config, requests := testserver.Config(t), &counted{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.RoundTripper = next
		return requests
	})
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	clock := testclock.NewFakePassiveClock(time.Now())
	metrics := metricsHandler(newAuthFilter(client, clock))
	code := func() int { return get(t, metrics, "/metrics", "Bearer "+token).Code }
	afterTTL := func() int {
		clock.SetTime(clock.Now().Add(decisionTTL + 1))
		return code()
	}

	g.Eventually(afterTTL).WithTimeout(20 * time.Second).Should(Equal(http.StatusOK))
	before := requests.count
	g.Expect(code()).To(Equal(http.StatusOK))
	g.Expect(requests.count).To(Equal(before), "the decision is cached")
	g.Expect(afterTTL()).To(Equal(http.StatusOK))
	g.Expect(requests.count).To(Equal(before+2), "a TokenReview and a SubjectAccessReview")

	revoke()
	g.Expect(code()).To(Equal(http.StatusOK), "the decision is still cached")
	g.Eventually(afterTTL).WithTimeout(20 * time.Second).Should(Equal(http.StatusForbidden))
}

func TestMetricsAreNotServedWithoutAnAPIServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: closed.URL})
	g.Expect(err).NotTo(HaveOccurred())
	metrics := metricsHandler(newAuthFilter(client, testclock.NewFakePassiveClock(time.Now())))
	response := get(t, metrics, "/metrics", "Bearer token")
	g.Expect(response.Code).To(Equal(http.StatusInternalServerError))
	g.Expect(response.Body.String()).To(Equal("Internal Server Error\n"), "the reason is in the log")
}
