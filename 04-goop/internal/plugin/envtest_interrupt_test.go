package plugin

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asksToBeInterrupted is in the environment of the program that TestCtrlCEndsTheServer interrupts.
const asksToBeInterrupted = "TEST_ASKS_TO_BE_INTERRUPTED"

func TestServerUntilCtrlC(t *testing.T) {
	if os.Getenv(asksToBeInterrupted) == "" {
		t.Skip("it is a part of TestCtrlCEndsTheServer")
	}
	env := apiServer(t).env
	host := strings.TrimPrefix(env.Config.Host, "https://")
	if _, err := os.Stdout.WriteString("at " + env.ControlPlane.Etcd.URL.Host + " " + host + "\n"); err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done()
}

// etcd and the API server have process groups of their own, which a terminal does not interrupt.
func TestCtrlCEndsTheServer(t *testing.T) {
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerUntilCtrlC$")
	test.Env = append(os.Environ(), asksToBeInterrupted+"=yes")
	output, err := test.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := test.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(output); addresses == nil && lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			addresses = strings.Fields(found)
		}
	}
	if err := test.Process.Signal(os.Interrupt); err != nil || len(addresses) != 2 {
		t.Fatalf("etcd and the API server are at %q, %v", addresses, err)
	}
	if err := test.Wait(); err == nil {
		t.Error("a test that is interrupted passes")
	}
	for _, address := range addresses {
		if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
			_ = connection.Close()
			t.Errorf("a server still listens at %s", address)
		}
	}
}
