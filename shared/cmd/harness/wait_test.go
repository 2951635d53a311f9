package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
)

// Standard output may be thrown away; that a command waits, for what, and how that ends is on standard error.
func TestWaitingIsSaidOnStandardError(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	t.Setenv("CLUSTER", "embedded")
	t.Setenv("CLUSTER_NAME", "waiting")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("ALLOW_CONTEXT", "")
	unlock, err := cluster.Lock(t.Context(), t.Output(), "", "02-lolcow e2e")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	stage, err := filepath.Abs("../../deploy/testdata/stage")
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd *cobra.Command, args ...string) (out, errs string, err error) {
		var o, e bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		cmd.SetOut(&o)
		cmd.SetErr(&e)
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err = cmd.ExecuteContext(ctx)
		return o.String(), e.String(), err
	}
	for name, cmd := range map[string]*cobra.Command{"install": newInstall(), "run": newRun(), "up": newCluster(), "delete": newCluster()} {
		args := []string{"--stage", stage}
		if name == "up" || name == "delete" {
			args = []string{name}
		}
		out, errs, err := run(cmd, args...)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s did not wait: %v", name, err)
		}
		if !strings.Contains(errs, "in use by 02-lolcow e2e (pid ") || !strings.Contains(errs, "Ctrl-C") || strings.Contains(out, "in use") {
			t.Errorf("%s: standard output %q, standard error %q", name, out, errs)
		}
	}
	if _, _, err := run(newDeploy(), "--stage", stage); err == nil || !strings.Contains(err.Error(), "use `make run`") {
		t.Errorf("deploy waits where it cannot work: %v", err)
	}
}
