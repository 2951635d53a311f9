package raw

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

// reviewer simulates an API server that knows two users by their tokens: "allowed" may get /metrics until allows is false,
// "unbound" may not. The tests of internal/conformance have a real one.
func reviewer(allows *bool) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated = review.Spec.Token == "allowed" || review.Spec.Token == "unbound"
		review.Status.User.Username = review.Spec.Token
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked := *review.Spec.NonResourceAttributes
		review.Status.Allowed = *allows && review.Spec.User == "allowed" &&
			asked == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		return true, review, nil
	})
	return client
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
	metrics := metricsHandler(newAuthFilter(reviewer(new(true)), testclock.NewFakePassiveClock(time.Now())))
	for name, test := range map[string]struct {
		path, authorization string
		want                int
	}{
		"no header":               {"/metrics", "", http.StatusUnauthorized},
		"an unknown token":        {"/metrics", "Bearer made-up", http.StatusUnauthorized},
		"no token":                {"/metrics", "Bearer ", http.StatusUnauthorized},
		"another scheme":          {"/metrics", "Basic allowed", http.StatusUnauthorized},
		"a token and no scheme":   {"/metrics", "allowed", http.StatusUnauthorized},
		"no permission":           {"/metrics", "Bearer unbound", http.StatusForbidden},
		"another path":            {"/metrics/cadvisor", "Bearer allowed", http.StatusNotFound},
		"a permission":            {"/metrics", "Bearer allowed", http.StatusOK},
		"the scheme in lowercase": {"/metrics", "bearer allowed", http.StatusOK},
	} {
		response := get(t, metrics, test.path, test.authorization)
		g.Expect(response.Code).To(Equal(test.want), name)
		served := strings.Contains(response.Body.String(), "go_goroutines")
		g.Expect(served).To(Equal(test.want == http.StatusOK), name)
	}
}

func TestDecisionIsCachedForAWhile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	allows := true
	client, clock := reviewer(&allows), testclock.NewFakePassiveClock(time.Now())
	metrics := metricsHandler(newAuthFilter(client, clock))
	code := func() int { return get(t, metrics, "/metrics", "Bearer allowed").Code }

	g.Expect(code()).To(Equal(http.StatusOK))
	g.Expect(client.Actions()).To(HaveLen(2), "a TokenReview and a SubjectAccessReview")
	allows = false
	clock.SetTime(clock.Now().Add(decisionTTL - 1))
	g.Expect(code()).To(Equal(http.StatusOK))
	g.Expect(client.Actions()).To(HaveLen(2), "the decision is cached")
	clock.SetTime(clock.Now().Add(2))
	g.Expect(code()).To(Equal(http.StatusForbidden))
	g.Expect(client.Actions()).To(HaveLen(4))
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
