package faults

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"example.com/workbook/shared/proc"
)

// startsServer says in the environment that TestServerUntilInterrupted runs.
const startsServer = "FAULTS_STARTS_SERVER"

// TestServerUntilInterrupted is the program that TestInterruptEndsTheServer interrupts.
func TestServerUntilInterrupted(t *testing.T) {
	if os.Getenv(startsServer) == "" {
		t.Skip("it is a part of TestInterruptEndsTheServer")
	}
	if _, err := startServer(t, Operator{Scheme: clientgoscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	fmt.Println(startsServer)
	<-t.Context().Done()
}

// Ctrl-C in a terminal reaches the test, and neither etcd nor the API server: those have process groups of their own.
func TestInterruptEndsTheServer(t *testing.T) {
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerUntilInterrupted$")
	dir := t.TempDir()
	test.Env = append(os.Environ(), startsServer+"=yes", "TMPDIR="+dir)
	test.Stderr = os.Stderr
	output, err := test.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := test.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == startsServer {
			break
		}
	}
	children := proc.Naming(t.Context(), dir)
	if len(children) != 2 {
		t.Fatalf("got %v, want etcd and the API server", children)
	}
	if err := test.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := test.Wait(); err == nil {
		t.Error("a test that is interrupted passes")
	}
	for _, child := range children {
		if child.Alive(t.Context()) {
			t.Errorf("%s runs on after the end of the test", child.Name)
		}
	}
	if err := proc.End(t.Context(), os.Stderr, children, stepLimit); err != nil {
		t.Error(err)
	}
}
