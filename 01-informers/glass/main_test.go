package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

const soon = 15 * time.Second

// output is what a program writes while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// get reads a whole response: of a stream, until it ends.
func get(ctx context.Context, address string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

var printed = regexp.MustCompile(`http://\S+`)

// started starts the program and waits until it has printed its address. The channel receives its exit code.
func started(t *testing.T, args ...string) (address string, out, errOut *output, stop func(), code chan int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, errOut, code = &output{}, &output{}, make(chan int, 1)
	go func() { code <- run(ctx, args, out, errOut) }()
	t.Cleanup(stop)
	NewWithT(t).Eventually(out.String, soon).Should(MatchRegexp(printed.String()), "stderr: %s", errOut)
	return printed.FindString(out.String()), out, errOut, stop, code
}

func TestServesThePageUntilItIsStopped(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kubeconfig := testserver.Kubeconfig(t, testserver.Config(t))
	address, out, errOut, stop, code := started(t, "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--resource", "cm", "-n", "default")
	g.Expect(out.String()).To(Equal("The glass informer on configmaps of namespace default: " + address + "\nCtrl-C ends it.\n"))
	status, body, err := get(t.Context(), address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(http.StatusOK))
	g.Expect(body).To(ContainSubstring("<html"))
	state := func() string {
		_, body, err := get(t.Context(), address+"/state")
		g.Expect(err).NotTo(HaveOccurred())
		return body
	}
	g.Eventually(state, soon).Should(ContainSubstring(`"synced":true`))

	streamed := make(chan error, 1)
	go func() {
		_, _, err := get(t.Context(), address+"/events")
		streamed <- err
	}()
	g.Eventually(state, soon).Should(ContainSubstring(`"clients":1}`))
	stop()
	g.Eventually(code, soon).Should(Receive(Equal(0)))
	g.Eventually(streamed, soon).Should(Receive(BeNil()), "the stream ends without an error")
	g.Expect(errOut.String()).To(BeEmpty())
}

func TestWarnsAboutAnAddressThatOthersCanReach(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kubeconfig := testserver.Kubeconfig(t, testserver.Config(t))
	address, _, errOut, stop, code := started(t, "--kubeconfig", kubeconfig, "--address", "0.0.0.0:0", "--resource", "namespaces", "-n", "ignored")
	g.Expect(errOut.String()).To(HavePrefix("glass: warning: 0.0.0.0:0 can be reached from other machines"))
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "]:")
	status, _, err := get(t.Context(), "http://127.0.0.1:"+port+"/state")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(http.StatusOK))
	stop()
	g.Eventually(code, soon).Should(Receive(Equal(0)))
}

func TestFailsWithOneLine(t *testing.T) {
	t.Parallel()
	kubeconfig := testserver.Kubeconfig(t, testserver.Config(t))
	unprivileged := testserver.Kubeconfig(t, testserver.User(t, "unprivileged"))
	nowhere := testserver.Kubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"})
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = taken.Close() })

	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown resource": {
			[]string{"--kubeconfig", kubeconfig, "--resource", "confgmaps"},
			`glass: the cluster does not know this resource: finding the resource "confgmaps": .*; "kubectl api-resources" lists those it knows`,
		},
		"a subresource": {
			[]string{"--kubeconfig", kubeconfig, "--resource", "pods/log"},
			`glass: the cluster does not know this resource: finding the resource "pods/log": .*`,
		},
		"a resource that cannot be listed": {
			[]string{"--kubeconfig", kubeconfig, "--resource", "bindings"},
			`glass: listing bindings: the server could not find the requested resource`,
		},
		"no permission to list": {
			[]string{"--kubeconfig", unprivileged},
			`glass: the kubeconfig's user lacks a permission: listing configmaps: .*cannot list resource "configmaps".*`,
		},
		"no cluster": {
			[]string{"--kubeconfig", nowhere},
			`glass: .*connection refused.*make cluster.*`,
		},
		"no kubeconfig": {
			[]string{"--kubeconfig", "/nowhere/config"},
			`glass: .*/nowhere/config.*`,
		},
		"an address in use": {
			[]string{"--kubeconfig", kubeconfig, "--address", taken.Addr().String()},
			`glass: the page's address cannot be used: .*address already in use; choose another with --address`,
		},
		"an invalid address": {
			[]string{"--kubeconfig", kubeconfig, "--address", "teapot"},
			`glass: the page's address cannot be used: .*missing port in address; choose another with --address`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var out, errOut output
			g.Expect(run(t.Context(), test.args, &out, &errOut)).To(Equal(1))
			g.Expect(errOut.String()).To(MatchRegexp("^" + test.want + "\n$"))
			g.Expect(out.String()).To(BeEmpty())
		})
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":              {[]string{"--help"}, 0, "Usage: go run ./glass [flags]"},
		"an unknown flag":   {[]string{"--colour"}, 2, "flag provided but not defined: -colour"},
		"an argument":       {[]string{"pods"}, 2, "glass takes no arguments, only flags: --help lists them\n"},
		"no workers":        {[]string{"--workers", "0"}, 2, "--workers is 0, want 1 to 100\n"},
		"negative work":     {[]string{"--work-time", "-1s"}, 2, "--work-time and --fail-every cannot be negative\n"},
		"work without unit": {[]string{"--work-time", "50"}, 2, "invalid value \"50\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var out, errOut output
			g.Expect(run(t.Context(), test.args, &out, &errOut)).To(Equal(test.code))
			g.Expect(errOut.String()).To(ContainSubstring(test.want))
		})
	}
}
