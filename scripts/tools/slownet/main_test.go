package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// published is a folder with a megabyte as each program.
func published(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{"kube-scheduler", "kwok"}, envtest...) {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), 1e6), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// curl is a command that downloads a file, fails where there is none, and does not look elsewhere.
func curl(address, to string) []string {
	return []string{"curl", "--silent", "--show-error", "--fail", "--location", "--max-time", "60", "--output", to, address}
}

func TestWhatIsReceivedIsSlow(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is missing")
	}
	to := filepath.Join(t.TempDir(), "file")
	began := time.Now()
	code, err := run(t.Context(), 8, published(t), "v1.0.0", curl("https://dl.k8s.io/release/v1.0.0/bin/linux/amd64/kube-scheduler", to))
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	// A megabyte at 8 Mbit/s.
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("it took %s, want a second", took)
	}
	if data, err := os.ReadFile(to); err != nil || len(data) != 1e6 {
		t.Errorf("got %d bytes, error %v, want a megabyte", len(data), err)
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	if code, err := run(t.Context(), 50, "", "", []string{"sh", "-c", "exit 3"}); err != nil || code != 3 {
		t.Errorf("exit code %d, error %v, want 3 and none", code, err)
	}
	if _, err := run(t.Context(), 50, "", "", []string{"/no/such/program"}); err == nil {
		t.Error("got no error for a program that does not exist")
	}
	if _, err := run(t.Context(), 50, t.TempDir(), "v1.0.0", []string{"true"}); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("got %v for a folder without programs, want an error that names the first", err)
	}
}

func TestTheCommandEndsWithSlownet(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	code, err := run(ctx, 50, "", "", []string{"sleep", "30"})
	if took := time.Since(began); took > 10*time.Second || (err == nil && code == 0) {
		t.Errorf("after %s: exit code %d, error %v, want a failure at once", took, code, err)
	}
}

// What is published is what setup-envtest and the harness look for.
func TestTheIndexNamesTheArchive(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is missing")
	}
	dir := t.TempDir()
	index, archive := filepath.Join(dir, "index"), filepath.Join(dir, "archive")
	script := fmt.Sprintf(`%s && %s && test "$(sha512sum <%s | cut -d" " -f1)" = "$(sed -n 's/ *hash: //p' %s)" && tar -tzf %s`,
		strings.Join(curl("https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml", index), " "),
		strings.Join(curl(`$(sed -n "s/ *selfLink: //p" `+index+`)`, archive), " "), archive, index, archive)
	code, err := run(t.Context(), 800, published(t), "v1.0.0", []string{"sh", "-c", script})
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, error %v", code, err)
	}
}
