package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLockSaysWhoHoldsItAndWaits(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	var quiet bytes.Buffer
	unlock, err := Lock(t.Context(), &quiet, "locked", "the first suite")
	if err != nil {
		t.Fatal(err)
	}
	if quiet.Len() > 0 {
		t.Errorf("a free lock was talked about: %q", quiet.String())
	}

	// The second gives up when its context ends.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	if _, err := Lock(ctx, &out, "locked", "the second suite"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got error %v, want that of the context", err)
	}
	if want := fmt.Sprintf("the first suite (pid %d", os.Getpid()); !strings.Contains(out.String(), want) {
		t.Errorf("it was not said that %q holds the lock: %q", want, out.String())
	}

	// The third waits and gets it.
	got := make(chan error, 1)
	go func() {
		unlock, err := Lock(t.Context(), &bytes.Buffer{}, "locked", "the third suite")
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Errorf("the lock was not handed on: %v", err)
	}

	// Another cluster's lock is another lock.
	other, err := Lock(t.Context(), &bytes.Buffer{}, "another", "")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

// An operator that runs keeps neither `make install` nor another stage from the cluster, but a suite, and itself.
func TestAClusterIsShared(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	var out bytes.Buffer
	endRun, err := Share(soon(), &out, "shared", "make stage-2 run")
	if err != nil {
		t.Fatal(err)
	}
	endOperator, err := LockStage(soon(), &out, "shared", "02-lolcow", "make stage-2 run")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Share(soon(), &out, "shared", "make stage-1 run")
	if err != nil {
		t.Fatal(err)
	}
	otherOperator, err := LockStage(soon(), &out, "shared", "01-informers", "make stage-1 run")
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("a free lock was talked about: %q", out.String())
	}

	if _, err := LockStage(soon(), &out, "shared", "02-lolcow", "make stage-2 deploy"); err == nil {
		t.Error("the same operator runs twice")
	}
	if want := "the operator of 02-lolcow on cluster shared is in use by make stage-2 run (pid"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if _, err := Lock(soon(), &out, "shared", "make stage-3 e2e"); err == nil {
		t.Error("a suite runs beside an operator")
	}
	for _, want := range []string{"make stage-2 run (pid", "and by make stage-1 run (pid", "Ctrl-C in its terminal"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want it to contain %q", out.String(), want)
		}
	}
	for _, end := range []func(){otherOperator, other, endOperator} {
		end()
	}
	out.Reset()
	if _, err := Lock(soon(), &out, "shared", "make stage-3 e2e"); err == nil || strings.Contains(out.String(), "make stage-1 run") {
		t.Errorf("it was said that one holds the lock that has ended: %q, %v", out.String(), err)
	}
	endRun()
	endSuite, err := Lock(soon(), &out, "shared", "make stage-3 e2e")
	if err != nil {
		t.Fatal(err)
	}
	endSuite()
}
