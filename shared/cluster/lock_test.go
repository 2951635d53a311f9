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
	if want := fmt.Sprintf("pid %d, the first suite", os.Getpid()); !strings.Contains(out.String(), want) {
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
