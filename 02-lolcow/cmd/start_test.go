package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// operatorVariable has this test binary be the operator, as a process of its own: a process can set up its handler of
// signals once.
const operatorVariable = "TEST_LOLCOW_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(operatorVariable) != "" {
		main()
		return
	}
	SetDefaultEventuallyTimeout(time.Minute)
	os.Exit(m.Run())
}

// discovery is what an API server says that it serves, as far as the operator asks before it starts.
var discovery = map[string]string{
	"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [
		{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
		{"name": "my.domain", "versions": [{"groupVersion": "my.domain/v1alpha1", "version": "v1alpha1"}]}]}`,
	"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
		{"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["list", "watch"]},
		{"name": "services", "namespaced": true, "kind": "Service", "verbs": ["list", "watch"]}]}`,
	"/apis/apps/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [
		{"name": "deployments", "namespaced": true, "kind": "Deployment", "verbs": ["list", "watch"]}]}`,
	"/apis/my.domain/v1alpha1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "my.domain/v1alpha1", "resources": [
		{"name": "lolcows", "namespaced": true, "kind": "Lolcow", "verbs": ["list", "watch"]}]}`,
}

// An operator whose caches never fill, because it lacks the permission to list Lolcows for instance, ends when its context does.
func TestItEndsBeforeItsCachesAreFull(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	listed := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if content, ok := discovery[r.URL.Path]; ok {
			fmt.Fprint(w, content)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/lolcows") {
			listed <- struct{}{}
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}`, server.URL), 0o600)).To(Succeed())

	operator := exec.CommandContext(t.Context(), os.Args[0],
		"--lolcow-image=lolcow:test", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	operator.Env = append(os.Environ(), operatorVariable+"=yes", "KUBECONFIG="+kubeconfig)
	operator.Stderr = t.Output()
	g.Expect(operator.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- operator.Wait() }()
	defer func() { _ = operator.Process.Kill() }()

	g.Eventually(listed).WithTimeout(20 * time.Second).Should(Receive())
	g.Expect(operator.Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Eventually(ended).WithTimeout(10*time.Second).Should(Receive(BeNil()), "terminationGracePeriodSeconds is 10")
}
