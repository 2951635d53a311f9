package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// An editor saves in several steps: write beside, rename, change the mode. A check begins when they are over.
	settle = 80 * time.Millisecond
	// How often the folder is read where the system does not report changes, and to find a folder that was created anew.
	poll = 2 * time.Second
)

// watch sends whenever the work in dir has changed, until ctx ends. It compares the content: a file that is saved
// without a change sends nothing.
func watch(ctx context.Context, dir string) <-chan struct{} {
	changed := make(chan struct{}, 1)
	w, last := newWatcher(dir), digest(dir)
	go func() {
		defer w.close()
		for w.wait(ctx) {
			w.follow()
			now := digest(dir)
			if now == last {
				continue
			}
			last = now
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed
}

// watcher waits for anything that happens in a folder and below it.
type watcher struct {
	dir string
	// system is nil where the system has no watch left to give. The folder is polled then.
	system *fsnotify.Watcher
}

func newWatcher(dir string) *watcher {
	w := &watcher{dir: dir}
	if system, err := fsnotify.NewWatcher(); err == nil {
		w.system = system
	}
	w.follow()
	return w
}

func (w *watcher) close() {
	if w.system != nil {
		_ = w.system.Close()
	}
}

// follow watches all folders that exist now, and the one above: a folder that is deleted takes its watch along.
func (w *watcher) follow() {
	if w.system == nil {
		return
	}
	_ = w.system.Add(filepath.Dir(w.dir))
	_ = filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not watched; polling finds it later
		}
		if path != w.dir && !ours(entry.Name()) {
			return filepath.SkipDir
		}
		_ = w.system.Add(path)
		return nil
	})
}

// wait returns when something happened and has settled, or after a while; false means that ctx has ended.
func (w *watcher) wait(ctx context.Context) bool {
	var events chan fsnotify.Event
	var failures chan error
	if w.system != nil {
		events, failures = w.system.Events, w.system.Errors
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for happened := false; ; {
		select {
		case <-ctx.Done():
			return false
		case event := <-events:
			// The time counts from the first event: a program that writes all the time must not delay the check for ever.
			if !happened && ours(filepath.Base(event.Name)) {
				happened = true
				timer.Reset(settle)
			}
		case _, happened = <-failures: // too many events, and some are lost: read the folder
			timer.Reset(settle)
		case <-timer.C:
			return true
		}
	}
}
