package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/workbook/shared/config"
)

// Lock gives this process the cluster of that name (both kinds) for itself: for a suite, and for what makes, replaces or
// ends a cluster. While other processes use the cluster, Lock says to out which, and waits until ctx ends. what is shown
// to others: "make stage-2 e2e". The system releases the lock of a process that dies, so a lock is never left behind.
func Lock(ctx context.Context, out io.Writer, name, what string) (unlock func(), err error) {
	return lock(ctx, out, name, "", what, (*flock.Flock).TryLock, (*flock.Flock).TryLockContext)
}

// Share keeps the cluster of that name from being replaced or ended, and suites from starting. Any number of processes
// share it: an operator that runs does not keep another stage, or `make install`, from the cluster.
func Share(ctx context.Context, out io.Writer, name, what string) (unlock func(), err error) {
	return lock(ctx, out, name, "", what, (*flock.Flock).TryRLock, (*flock.Flock).TryRLockContext)
}

// LockStage gives this process the operator of one stage on the cluster of that name: there must not be two writers. The
// caller shares the cluster.
func LockStage(ctx context.Context, out io.Writer, name, stage, what string) (unlock func(), err error) {
	// No name of a cluster has a dot.
	return lock(ctx, out, name, "."+stage, what, (*flock.Flock).TryLock, (*flock.Flock).TryLockContext)
}

// StageUser says which process has the operator of a stage, by LockStage; it is empty if none has.
func StageUser(name, stage string) string {
	cache, err := config.CacheDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(cache, "locks", cmp.Or(name, config.ClusterName())+"."+stage)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	l := flock.New(path)
	if locked, err := l.TryRLock(); locked || err != nil {
		_ = l.Unlock()
		return ""
	}
	return holders(path)
}

func lock(ctx context.Context, out io.Writer, name, suffix, what string,
	try func(*flock.Flock) (bool, error), wait func(*flock.Flock, context.Context, time.Duration) (bool, error),
) (unlock func(), err error) {
	if name == "" {
		name = config.ClusterName()
	}
	if !strings.HasPrefix(name, externalLock) {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	cache, err := config.CacheDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "locks", name+suffix)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder for locks: %w", err)
	}

	l := flock.New(path)
	locked, err := try(l)
	if err != nil {
		return nil, fmt.Errorf("locking cluster %s: %w", name, err)
	}
	if !locked {
		of := "cluster " + name
		if suffix != "" {
			of = "the operator of " + suffix[1:] + " on " + of
		}
		other := ", and CLUSTER_NAME=another makes a cluster beside this one"
		if strings.HasPrefix(name, externalLock) {
			other = ""
		}
		fmt.Fprintf(out, "==> %s is in use by %s; waiting for it to end. Ctrl-C in its terminal ends it, Ctrl-C here gives up%s\n", of, holders(path), other)
		if _, err := wait(l, ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for %s, in use by %s: %w", of, holders(path), err)
		}
	}
	// The file tells others whom they wait for; only the lock itself decides. On a full disk it stays as it is, and what
	// holds the lock may be what makes room. If two share it and write at once, one of them may not be named.
	text := fmt.Sprintf("%s (pid %d, since %s)\n", what, os.Getpid(), time.Now().Format(time.TimeOnly))
	_ = os.WriteFile(path, []byte(strings.Join(append(living(path), text), "")), 0o644)
	return func() {
		// Not what others have written meanwhile.
		_ = os.WriteFile(path, []byte(strings.ReplaceAll(strings.Join(living(path), ""), text, "")), 0o644)
		_ = l.Unlock()
	}, nil
}

// holders names the processes that hold a lock.
func holders(path string) string {
	text := strings.TrimSpace(strings.Join(living(path), ""))
	if text == "" {
		return "another process"
	}
	return strings.ReplaceAll(text, "\n", " and by ")
}

// maxHolders bounds what is read of a lock's file, in bytes: whatever else may be there, a lock does not take the memory.
const maxHolders = 64 << 10

// living are the lines of a lock's file whose processes are there: one that was killed could not remove its line.
func living(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxHolders))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, " (pid ")
		digits, _, _ := strings.Cut(rest, ",")
		pid, err := strconv.Atoi(digits)
		if err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			lines = append(lines, line)
		}
	}
	return lines
}
