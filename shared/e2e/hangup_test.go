package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

const markVariable = "HARNESS_TEST_MARK"

// TestHungUp is the suite that TestAClosedTerminalEndsASuiteInOrder runs in a process of its own.
func TestHungUp(t *testing.T) {
	mark := os.Getenv(markVariable)
	if mark == "" {
		t.Skip("it is a part of another test")
	}
	interruptOnHangUp()
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.It("lasts", func(ctx ginkgo.SpecContext) {
		fmt.Println("at work")
		<-ctx.Done()
	})
	ginkgo.AfterSuite(func() {
		fmt.Println("no process reads this")
		gomega.Expect(os.WriteFile(mark, []byte("ended in order"), 0o600)).To(gomega.Succeed())
	})
	ginkgo.RunSpecs(t, "hung up")
}

func TestAClosedTerminalEndsASuiteInOrder(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("this test runs under nohup, and so would the suite")
	}
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHungUp$", "-test.v")
	cmd.Env = append(os.Environ(), markVariable+"="+mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "at work" {
	}
	// What reads the output goes with the terminal.
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if text, err := os.ReadFile(mark); err != nil || string(text) != "ended in order" {
		t.Errorf("the suite did not end in order: %v, %v", cmd.ProcessState, err)
	}
}
