package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// The cluster and the namespace of TestLeadInAnotherProcess.
const (
	kubeconfigVariable = "WORKBOOK_LEADER_KUBECONFIG"
	namespaceVariable  = "WORKBOOK_LEADER_NAMESPACE"
)

// The leader is a process that is paused by SIGSTOP: neither its renewals nor the timer that would cancel its work
// run. When it continues, another candidate leads. The server rejects its write only if the write has the
// resourceVersion that the process has read.
func TestAPausedLeaderCanWriteAfterThePause(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace, client := testserver.Namespace(t), testserver.Client(t)
	configMaps := client.CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(t.Context(), lesson.ConfigMap(state, "none"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	leader := startLeader(t, namespace)
	g.Expect(leader.line(t)).To(Equal("leading"))
	g.Expect(leader.process.Signal(syscall.SIGSTOP)).To(Succeed())

	lock, err := newLock(testserver.Config(t), namespace, "next", brief)
	g.Expect(err).NotTo(HaveOccurred())
	next, err := start(t.Context(), lock, brief, true)
	g.Expect(err).NotTo(HaveOccurred())
	defer next.stop()
	g.Expect(next.awaitLeading(t.Context())).To(Succeed())
	_, err = configMaps.Update(t.Context(), lesson.ConfigMap(state, "next"), metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	// The paused leader has read the state before the pause.
	leader.send(t, "update")
	g.Expect(leader.process.Signal(syscall.SIGCONT)).To(Succeed())
	g.Expect(leader.line(t)).To(Equal("update: conflict"))
	g.Expect(writer(t, client, namespace)).To(Equal("next"))

	leader.send(t, "patch")
	g.Expect(leader.line(t)).To(Equal("patch: accepted"))
	g.Expect(writer(t, client, namespace)).To(Equal("paused"), "a write without a precondition is not rejected")
}

func writer(t *testing.T, client kubernetes.Interface, namespace string) string {
	t.Helper()
	now, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), state, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return now.Data["value"]
}

// leader is a process that leads and runs commands.
type leader struct {
	process *os.Process
	stdin   *os.File
	lines   *bufio.Scanner
}

// startLeader starts TestLeadInAnotherProcess. The process is killed with the test.
func startLeader(t *testing.T, namespace string) *leader {
	t.Helper()
	g := NewWithT(t)
	kubeconfig := testserver.Kubeconfig(t, testserver.Config(t))
	command := exec.Command(os.Args[0], "-test.run=^TestLeadInAnotherProcess$") //nolint:noctx // the cleanup kills it, also if it is stopped
	command.Env = append(os.Environ(), kubeconfigVariable+"="+kubeconfig, namespaceVariable+"="+namespace)
	command.Stderr = os.Stderr
	stdin, input, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	command.Stdin = stdin
	stdout, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_, _ = stdin.Close(), input.Close()
	})
	return &leader{process: command.Process, stdin: input, lines: bufio.NewScanner(stdout)}
}

func (l *leader) send(t *testing.T, command string) {
	t.Helper()
	_, err := fmt.Fprintln(l.stdin, command)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func (l *leader) line(t *testing.T) string {
	t.Helper()
	NewWithT(t).Expect(l.lines.Scan()).To(BeTrue(), "the process has ended: %v", l.lines.Err())
	return strings.TrimSpace(l.lines.Text())
}

// TestLeadInAnotherProcess is what that process runs. It leads, reads the state, and writes it at each command on
// standard input, like a reconciliation that does not check its context between two requests.
func TestLeadInAnotherProcess(t *testing.T) {
	if os.Getenv(kubeconfigVariable) == "" {
		t.Skip("runs in a process of its own")
	}
	g := NewWithT(t)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfigVariable))
	g.Expect(err).NotTo(HaveOccurred())
	namespace := os.Getenv(namespaceVariable)
	lock, err := newLock(config, namespace, "paused", brief)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := start(t.Context(), lock, brief, true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.awaitLeading(t.Context())).To(Succeed())

	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)
	read, err := client.Get(t.Context(), state, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	read.Data["value"] = "paused"
	fmt.Println("leading")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case "update":
			_, err = client.Update(t.Context(), read, metav1.UpdateOptions{})
		case "patch":
			_, err = client.Patch(t.Context(), state, types.MergePatchType, []byte(`{"data":{"value":"paused"}}`), metav1.PatchOptions{})
		}
		switch {
		case err == nil:
			fmt.Printf("%s: accepted\n", commands.Text())
		case apierrors.IsConflict(err):
			fmt.Printf("%s: conflict\n", commands.Text())
		default:
			fmt.Printf("%s: %v\n", commands.Text(), err)
		}
	}
}
