package lesson_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/testserver"
)

// access returns a kubeconfig for a server that is not Kubernetes.
func access(t *testing.T, host string) string {
	t.Helper()
	return testserver.Kubeconfig(t, &rest.Config{Host: host})
}

// listen returns a listener that accepts no connection.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// configError returns the message for a kubeconfig that cannot be used.
func configError(t *testing.T, file string) string {
	t.Helper()
	_, err := connect.Config(file)
	if err == nil {
		t.Fatalf("the kubeconfig %s can be used", file)
	}
	return "demo: " + err.Error() + "\n"
}

// explanation returns what the message says before an error of this kind.
func explanation(kind error) string {
	text, _, _ := strings.Cut(connect.Explain(kind).Error(), kind.Error())
	return "demo: " + text
}

const whileCreating = "creating a namespace for the lesson: "

var (
	noResponse  = explanation(&net.OpError{Op: "dial", Err: io.EOF})
	notVerified = explanation(&tls.CertificateVerificationError{Err: io.EOF})
	forbidden   = explanation(apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", io.EOF))
)

// badInput is a mistake that a user can make.
type badInput struct {
	args []string
	code int
	want string
}

func badInputs(t *testing.T) map[string]badInput {
	t.Helper()
	otherServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	otherServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	otherServer.StartTLS()
	t.Cleanup(otherServer.Close)

	return map[string]badInput{
		"unknown flag": {
			[]string{"--nope"}, 2,
			"demo: flag provided but not defined: -nope; --help lists the flags\n",
		},
		"flag without its value": {
			[]string{"--kubeconfig"}, 2,
			"demo: flag needs an argument: -kubeconfig; --help lists the flags\n",
		},
		"argument":           {[]string{"pods"}, 2, "demo: unexpected argument \"pods\"; --help lists the flags\n"},
		"no such kubeconfig": {[]string{"--kubeconfig", "/does/not/exist"}, 1, configError(t, "/does/not/exist")},
		"unreachable cluster": {
			[]string{"--kubeconfig", access(t, "https://"+testserver.FreeAddress(t))}, 1,
			noResponse + whileCreating + "Post ",
		},
		"another cluster's certificate": {
			[]string{"--kubeconfig", access(t, otherServer.URL)}, 1,
			notVerified + whileCreating + "Post ",
		},
		"user without permissions": {
			[]string{"--kubeconfig", testserver.Kubeconfig(t, testserver.User(t, "reader"))}, 1,
			forbidden + whileCreating + "namespaces is forbidden: " +
				"User \"reader\" cannot create resource \"namespaces\" in API group \"\" at the cluster scope\n",
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
			g.Expect(got.errOut).To(HavePrefix(test.want))
			g.Expect(got.errOut).NotTo(ContainSubstring("goroutine"), "no stack trace")
			g.Expect(got.errOut).To(HaveSuffix("\n"))
			g.Expect(bytes.Count([]byte(got.errOut), []byte("\n"))).To(Equal(1), got.errOut)
		})
	}
}

func TestNoClusterAtAll(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(runLesson(unreached(t))).To(Equal(ran{1, "", configError(t, "")}))
}

// A server behind a firewall that drops packets neither responds nor closes the connection.
func TestARequestWithoutAResponseTimesOut(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	got := runLesson(unreached(t), "--kubeconfig", access(t, "https://"+listen(t).Addr().String()))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.errOut).To(HavePrefix(noResponse + whileCreating))
}
