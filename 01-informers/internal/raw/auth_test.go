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

// tokenOf makes a ServiceAccount and returns a token of it.
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

// mayRead lets a ServiceAccount get /metrics until the returned function is called.
func mayRead(t *testing.T, namespace, name string) (revoke func()) {
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

// get asks a handler for a path as a caller with an Authorization header.
func get(t *testing.T, handler http.Handler, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

func TestMetricsAreForWhoMayReadThem(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	allowed, stranger := tokenOf(t, namespace, "allowed"), tokenOf(t, namespace, "stranger")
	mayRead(t, namespace, "allowed")
	clock := testclock.NewFakePassiveClock(time.Now())
	metrics := metricsHandler(newGate(testserver.Client(t), clock))

	for name, test := range map[string]struct {
		path, authorization string
		want                int
	}{
		"nobody":                  {"/metrics", "", http.StatusUnauthorized},
		"an unknown token":        {"/metrics", "Bearer made-up", http.StatusUnauthorized},
		"no token":                {"/metrics", "Bearer ", http.StatusUnauthorized},
		"another scheme":          {"/metrics", "Basic " + allowed, http.StatusUnauthorized},
		"a token and no scheme":   {"/metrics", allowed, http.StatusUnauthorized},
		"known, without a right":  {"/metrics", "Bearer " + stranger, http.StatusForbidden},
		"another path":            {"/metrics/cadvisor", "Bearer " + allowed, http.StatusNotFound},
		"the scheme's small form": {"/metrics", "bearer " + stranger, http.StatusForbidden},
	} {
		answer := get(t, metrics, test.path, test.authorization)
		g.Expect(answer.Code).To(Equal(test.want), name)
		g.Expect(answer.Body.String()).NotTo(ContainSubstring("workqueue"), name)
	}
	g.Eventually(func(g Gomega) {
		// The server's authorizer hears of a new right by a watch, and a verdict counts for a while.
		clock.SetTime(clock.Now().Add(verdictTTL + 1))
		answer := get(t, metrics, "/metrics", "Bearer "+allowed)
		g.Expect(answer.Code).To(Equal(http.StatusOK))
		g.Expect(answer.Body.String()).To(ContainSubstring("go_goroutines"))
	}).WithTimeout(20 * time.Second).Should(Succeed())
}

// asked counts the requests that go to the server.
type asked struct {
	http.RoundTripper
	count int
}

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	a.count++
	return a.RoundTripper.RoundTrip(request)
}

func TestVerdictCountsForAWhile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	token := tokenOf(t, namespace, "reader")
	revoke := mayRead(t, namespace, "reader")
	config, requests := testserver.Config(t), &asked{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.RoundTripper = next
		return requests
	})
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	clock := testclock.NewFakePassiveClock(time.Now())
	metrics := metricsHandler(newGate(client, clock))
	code := func() int { return get(t, metrics, "/metrics", "Bearer "+token).Code }
	afterAWhile := func() int {
		clock.SetTime(clock.Now().Add(verdictTTL + 1))
		return code()
	}

	g.Eventually(afterAWhile).WithTimeout(20 * time.Second).Should(Equal(http.StatusOK))
	before := requests.count
	g.Expect(code()).To(Equal(http.StatusOK))
	g.Expect(requests.count).To(Equal(before), "nobody was asked")
	g.Expect(afterAWhile()).To(Equal(http.StatusOK))
	g.Expect(requests.count).To(Equal(before+2), "a TokenReview and a SubjectAccessReview")

	revoke()
	g.Expect(code()).To(Equal(http.StatusOK), "for a while it still counts")
	g.Eventually(afterAWhile).WithTimeout(20 * time.Second).Should(Equal(http.StatusForbidden))
}

func TestServerThatCannotBeAskedLetsNobodyIn(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	nowhere := httptest.NewServer(http.NotFoundHandler())
	nowhere.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: nowhere.URL})
	g.Expect(err).NotTo(HaveOccurred())
	metrics := metricsHandler(newGate(client, testclock.NewFakePassiveClock(time.Now())))
	answer := get(t, metrics, "/metrics", "Bearer token")
	g.Expect(answer.Code).To(Equal(http.StatusInternalServerError))
	g.Expect(answer.Body.String()).To(Equal("Internal Server Error\n"), "the reason is in the log")
}
