package faults

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/testserver"
)

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"GET /api/v1/namespaces":                                           "list namespaces",
		"GET /api/v1/namespaces/a":                                         "get namespaces",
		"PUT /api/v1/namespaces/a/finalize":                                "update namespaces/finalize",
		"GET /api/v1/namespaces/a/pods":                                    "list pods",
		"GET /api/v1/namespaces/a/pods?watch=true":                         "watch pods",
		"GET /api/v1/pods?watch=1":                                         "watch pods",
		"GET /api/v1/pods?watch=0&timeoutSeconds=3":                        "list pods",
		"GET /api/v1/namespaces/a/pods/b":                                  "get pods",
		"GET /api/v1/namespaces/a/pods/b/log":                              "get pods/log",
		"POST /apis/apps/v1/namespaces/a/deployments":                      "create deployments",
		"PATCH /apis/apps/v1/namespaces/a/deployments/b?force=true":        "patch deployments",
		"PATCH /apis/apps/v1/namespaces/a/deployments/b/status":            "patch deployments/status",
		"DELETE /apis/apps/v1/namespaces/a/deployments/b":                  "delete deployments",
		"DELETE /apis/apps/v1/namespaces/a/deployments":                    "deletecollection deployments",
		"GET /apis/samplecontroller.example.com/v1alpha1/foos?watch=true":  "watch foos",
		"GET /apis/samplecontroller.example.com/v1alpha1/foos?watch=false": "list foos",
		"GET /api/v1":  "get ",
		"GET /apis":    "get ",
		"GET /healthz": "get ",
	} {
		method, url, _ := strings.Cut(path, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "https://api"+url, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(parse(req).String()).To(Equal(want), path)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	start := time.Unix(0, 0)
	log := Log{
		{At: start, Verb: "list", Resource: "configmaps"},
		{At: start.Add(time.Second), Verb: "watch", Resource: "configmaps"},
		{At: start.Add(2 * time.Second), Verb: "watch", Resource: "configmaps"},
		{At: start.Add(3 * time.Second), Verb: "watch", Resource: "pods"},
	}
	g.Expect(log.String()).To(Equal("4: 1 list configmaps, 2 watch configmaps, 1 watch pods"))
	g.Expect(log.Since(start.Add(time.Second)).Before(start.Add(3 * time.Second)).String()).To(Equal("2: 2 watch configmaps"))
	g.Expect(log.Of("watch", "").String()).To(Equal("3: 2 watch configmaps, 1 watch pods"))
	g.Expect(log.Of("", "pods").String()).To(Equal("1: 1 watch pods"))
	g.Expect(log.Of("get", "pods").String()).To(Equal("0"))
	g.Expect(log).To(HaveLen(4), "what it was taken from is as it was")
}

// TestCredentials asserts that nobody is anybody else on the way through the proxy: in particular, no one
// gains its own credentials who has others.
func TestCredentials(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := newServer(t, testserver.Config(t))
	g.Expect(whoAmI(t.Context(), t, server.Config())).To(Equal("admin"))

	account := inprocess.NewAccount(t)
	config := account.Config()
	server.Route(config)
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

func TestRules(t *testing.T) {
	t.Parallel()
	g, ctx := NewWithT(t), t.Context()
	server := newServer(t, testserver.Config(t))
	config := server.Config()
	clients := clientFor(t, config)
	list := func() error {
		_, err := clients.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	}
	g.Expect(list()).To(Succeed())

	failure := server.Fail(Rule{Fault: Gone, Verb: "list", Resource: "configmaps", Times: 2})
	_, err := clients.CoreV1().ConfigMaps("default").Get(ctx, "none", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "another verb")
	_, err = clients.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "another resource")
	g.Expect(apierrors.IsResourceExpired(list())).To(BeTrue())
	g.Expect(apierrors.IsResourceExpired(list())).To(BeTrue())
	g.Expect(list()).To(Succeed(), "it has struck twice")
	g.Expect(failure.Struck()).To(Equal(2))

	failure = server.Fail(Rule{Fault: InternalError})
	g.Expect(apierrors.IsInternalError(list())).To(BeTrue())
	failure.Lift()
	g.Expect(list()).To(Succeed())

	failure = server.Fail(Rule{Fault: TooManyRequests, Times: 1})
	g.Expect(apierrors.IsTooManyRequests(list())).To(BeTrue())
	failure.Lift()

	// client-go tries again by itself where it is told when: rest/with_retry.go, IsNextRetry.
	start, before := time.Now(), len(server.Requests())
	server.Fail(Rule{Fault: TooManyRequests, RetryAfter: time.Second, Times: 2})
	g.Expect(list()).To(Succeed())
	g.Expect(time.Since(start)).To(BeNumerically(">=", 2*time.Second))
	g.Expect(server.Requests()).To(HaveLen(before+3), "each is counted")

	_, err = clients.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Requests().Of("watch", "")).To(HaveLen(1))
}

// TestRefuse asserts that what refuses is the kernel, so that client-go sees what it would see of an API
// server that is down, and that it comes back under its address.
func TestRefuse(t *testing.T) {
	t.Parallel()
	g, ctx := NewWithT(t), t.Context()
	server := newServer(t, testserver.Config(t))
	clients := clientFor(t, server.Config())
	get := func() error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	watcher, err := clients.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watcher.Stop()

	for range 3 {
		g.Expect(get()).To(Succeed())
		g.Expect(server.Refuse()).To(Succeed())
		before := len(server.Requests())
		// A request may meet the end of a connection that its client still took for alive.
		g.Eventually(func() bool { return utilnet.IsConnectionRefused(get()) }).Should(BeTrue())
		g.Expect(utilnet.IsConnectionRefused(get())).To(BeTrue())
		g.Expect(len(server.Requests())).To(BeNumerically(">", before), "what is refused counts too")
		g.Expect(server.Accept()).To(Succeed())
	}
	g.Eventually(func() bool {
		for {
			select {
			case _, open := <-watcher.ResultChan():
				if !open {
					return true
				}
			default:
				return false
			}
		}
	}).Should(BeTrue(), "the watch is broken")
	g.Expect(get()).To(Succeed())
}
