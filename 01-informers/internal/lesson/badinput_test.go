package lesson_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/testserver"
)

func kubeconfig(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// access is a kubeconfig for a server that is not Kubernetes.
func access(t *testing.T, host string) string {
	t.Helper()
	return testserver.Kubeconfig(t, &rest.Config{Host: host})
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// badInput is what a reader can get wrong.
type badInput struct {
	args []string
	code int
	want string
}

func badInputs(t *testing.T) map[string]badInput {
	t.Helper()
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)

	return map[string]badInput{
		"unknown flag": {
			[]string{"--nope"}, 2,
			"demo: flag provided but not defined: -nope; --help lists the flags\n",
		},
		"flag without its value": {
			[]string{"--kubeconfig"}, 2,
			"demo: flag needs an argument: -kubeconfig; --help lists the flags\n",
		},
		"argument": {
			[]string{"pods"}, 2,
			"demo takes no arguments, only flags: \"pods\" is too much; --help lists the flags\n",
		},
		"no such kubeconfig": {
			[]string{"--kubeconfig", "/does/not/exist"}, 1,
			"demo: there is no kubeconfig /does/not/exist\n",
		},
		"kubeconfig that is none": {
			[]string{"--kubeconfig", kubeconfig(t, "not: [yaml")}, 1,
			"demo: reading the kubeconfig ",
		},
		"empty kubeconfig": {
			[]string{"--kubeconfig", kubeconfig(t, "")}, 1,
			" names no cluster, or no current context\n",
		},
		"unreachable cluster": {
			[]string{"--kubeconfig", access(t, "https://"+closedPort(t))}, 1,
			"demo: the cluster does not answer: making a namespace to work in: Post ",
		},
		"a name that nobody has": {
			[]string{"--kubeconfig", access(t, "https://nowhere.invalid:6443")}, 1,
			"demo: the cluster does not answer: making a namespace to work in: Post ",
		},
		"another cluster's certificate": {
			[]string{"--kubeconfig", access(t, stranger.URL)}, 1,
			"demo: this is not the cluster that the kubeconfig is for: ",
		},
		"user without rights": {
			[]string{"--kubeconfig", testserver.Kubeconfig(t, testserver.User(t, "nobody"))}, 1,
			"demo: the kubeconfig's user lacks a right: making a namespace to work in: namespaces is forbidden: " +
				"User \"nobody\" cannot create resource \"namespaces\" in API group \"\" at the cluster scope\n",
		},
		"user that the cluster does not know": {
			[]string{"--kubeconfig", testserver.Kubeconfig(t, nameless(testserver.Config(t)))}, 1,
			"demo: the cluster does not know who you are: ",
		},
	}
}

func TestBadInputIsOneClearMessage(t *testing.T) {
	for name, test := range badInputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got := runLesson(unreached(t), test.args...)
			g.Expect(got.code).To(Equal(test.code))
			g.Expect(got.out).To(BeEmpty())
			g.Expect(got.errOut).To(ContainSubstring(test.want))
			g.Expect(got.errOut).NotTo(ContainSubstring("goroutine"), "no stack trace")
			g.Expect(got.errOut).To(HaveSuffix("\n"))
			g.Expect(bytes.Count([]byte(got.errOut), []byte("\n"))).To(Equal(1), got.errOut)
		})
	}
}

// nameless returns access with a token that no server gave out.
func nameless(config *rest.Config) *rest.Config {
	return &rest.Config{Host: config.Host, BearerToken: "made-up", TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}
}

func TestNoClusterAtAll(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(runLesson(unreached(t))).To(Equal(ran{1, "",
		"demo: there is no cluster to work on: bring one up with \"make cluster\", or name a kubeconfig with --kubeconfig\n"}))
}

// A server behind a firewall that drops everything neither answers nor refuses.
func TestClusterThatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = silent.Close() })
	got := runLesson(unreached(t), "--kubeconfig", access(t, "https://"+silent.Addr().String()))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.errOut).To(HavePrefix("demo: the cluster does not answer: making a namespace to work in: "))
}
