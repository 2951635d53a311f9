package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"example.com/workbook/shared/config"
)

// Lock gives this process the cluster of that name (both kinds) for itself, so that two suites on
// one machine do not disturb each other. While another process holds it, Lock says who and waits
// until ctx ends. what is shown to others: "make stage-2 e2e". The system releases the lock of a
// process that dies, so a lock is never left behind.
func Lock(ctx context.Context, out io.Writer, name, what string) (unlock func(), err error) {
	if name == "" {
		name = Name()
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	cache, err := config.CacheDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "locks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder for locks: %w", err)
	}

	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking cluster %s: %w", name, err)
	}
	if !locked {
		fmt.Fprintf(out, "==> cluster %s is in use by %s; waiting for it to end (Ctrl-C gives up)\n", name, holder(path))
		if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for cluster %s, in use by %s: %w", name, holder(path), err)
		}
	}
	// The file tells others whom they wait for; only the lock itself decides. On a full disk it stays empty, and what
	// holds the lock may be what makes room.
	text := fmt.Sprintf("pid %d, %s, since %s\n", os.Getpid(), what, time.Now().Format(time.TimeOnly))
	_ = os.WriteFile(path, []byte(text), 0o644)
	return func() { _ = lock.Unlock() }, nil
}

func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return "another process"
	}
	return strings.TrimSpace(string(text))
}
