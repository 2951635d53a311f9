package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
)

// inUse is locked, beside others, by each process that asks for an image, until that ends: what it has just found or
// built may not be in the nodes yet. Another checkout gives other images the same names.
var inUse struct {
	sync.Mutex
	file *os.File
}

// use returns the locked file.
func use() (*os.File, error) {
	cache, err := config.CacheDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "images.lock")
	inUse.Lock()
	defer inUse.Unlock()
	if inUse.file != nil && inUse.file.Name() == path {
		return inUse.file, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking images: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
		return nil, fmt.Errorf("locking images: %w", err)
	}
	inUse.file = file
	return file, nil
}

// prune removes what earlier code gave for the same target: nothing would ever use it again, and each edit leaves one.
// One that a container uses, or that cannot be removed, stays, and so do all while another process uses images: a later
// run prunes them.
func prune(ctx context.Context, e *engine.Engine, ref string) {
	lock, err := use()
	if err != nil {
		return
	}
	defer func() { _ = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH) }() // also after a failure: it loses the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return
	}
	repository := ref[:strings.LastIndex(ref, ":")]
	list, err := run(ctx, e.Name, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository)
	if err != nil {
		return
	}
	for line := range strings.Lines(list) {
		if old := strings.TrimSpace(line); old != ref {
			_, _ = run(ctx, e.Name, "image", "rm", old)
		}
	}
}
