package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// runningOperator is the operator as a process.
type runningOperator struct {
	*WithT
	t       *testing.T
	process *exec.Cmd
	probes  int
	ended   chan struct{}
	// err is how it ended.
	err error
}

// startOperator runs the operator until the test ends or stop is called, and waits until it is ready. Its webhook is where a
// listener has been until now.
func startOperator(t *testing.T, kubeconfig string, webhook net.Listener) *runningOperator {
	t.Helper()
	probes := holdPort(t)
	o := &runningOperator{WithT: NewWithT(t), t: t, probes: portOf(probes), ended: make(chan struct{})}
	o.process = exec.CommandContext(t.Context(), os.Args[0],
		"--lolcow-image=lolcow:test", "--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", o.probes),
		fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", portOf(webhook)), "--webhook-namespace="+webhookNamespace, "--webhook-service="+webhookService)
	o.process.Env = append(os.Environ(), operatorVariable+"=yes", "KUBECONFIG="+kubeconfig)
	o.process.Stderr = t.Output()
	_, _ = probes.Close(), webhook.Close()
	o.Expect(o.process.Start()).To(Succeed())
	go func() { o.err = o.process.Wait(); close(o.ended) }()
	t.Cleanup(func() { _ = o.process.Process.Kill(); <-o.ended })
	o.Eventually(o.readyz).Should(Equal(http.StatusOK))
	return o
}

func (o *runningOperator) readyz() (status int, err error) {
	select {
	case <-o.ended:
		return 0, StopTrying("the operator ended").Wrap(o.err)
	default:
	}
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", o.probes), nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// stop ends the operator in order.
func (o *runningOperator) stop() {
	o.t.Helper()
	o.Expect(o.process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	o.Eventually(o.ended).WithTimeout(30 * time.Second).Should(BeClosed())
	o.Expect(o.err).NotTo(HaveOccurred())
}

// holdPort listens at a port of this machine, so that no other process does, until it is closed. It ends all connections.
func holdPort(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	return listener
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
