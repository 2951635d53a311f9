package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"example.com/workbook/shared/config"
)

// progressVersion is the format of the progress file. Another format is not read, so that it is not overwritten.
const progressVersion = 1

// progress is what the runner remembers. It lies in a folder that git ignores.
type progress struct {
	Version int `json:"version"`
	// Current is the exercise that was open last.
	Current   string            `json:"current,omitempty"`
	Exercises map[string]record `json:"exercises,omitempty"`
}

// record is what is remembered of one exercise.
type record struct {
	// Done is when a check first passed. It is zero as long as none did.
	Done time.Time `json:"done,omitzero"`
	// Checks counts the checks that came to a result.
	Checks int `json:"checks,omitempty"`
	// Hints is how many hints were shown.
	Hints int `json:"hints,omitempty"`
}

// undo says that what was done does not pass any more.
func (r *record) undo() { r.Done = time.Time{} }

func (p *progress) done(id string) bool { return !p.Exercises[id].Done.IsZero() }

// edit changes the record of one exercise.
func (p *progress) edit(id string, change func(*record)) {
	if p.Exercises == nil {
		p.Exercises = map[string]record{}
	}
	r := p.Exercises[id]
	change(&r)
	p.Exercises[id] = r
}

// store is the folder .learn at the top of the repository: the progress, the locks, and the copies of replaced work.
// Each worktree has its own.
type store struct {
	dir string
	now func() time.Time
}

func newStore(root string) *store {
	return &store{dir: filepath.Join(root, ".learn"), now: time.Now}
}

func (s *store) file() string { return filepath.Join(s.dir, "progress.json") }

// load reads the progress. A file that does not exist yet is no progress.
func (s *store) load() (*progress, error) {
	text, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return &progress{Version: progressVersion}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the progress: %w", err)
	}
	var p progress
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("reading the progress in %s: %w: correct the file, or move it away to begin anew", s.file(), err)
	}
	if p.Version != progressVersion {
		return nil, fmt.Errorf("the progress in %s has format %d, and this program knows format %d: update the workbook, or move the file away to begin anew",
			s.file(), p.Version, progressVersion)
	}
	return &p, nil
}

// change reads the progress, changes it and writes it. Other runners wait meanwhile, so no change is lost, and a
// reader of the file sees the old one or the new one, never half of one.
func (s *store) change(ctx context.Context, change func(*progress)) error {
	unlock, err := s.lock(ctx, "progress.lock")
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.load()
	if err != nil {
		return err
	}
	change(p)
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("saving the progress: %w", err)
	}
	if err := config.WriteFile(s.file(), append(text, '\n')); err != nil {
		return fmt.Errorf("saving the progress: %w", err)
	}
	return nil
}

// lock waits for a short lock, which a runner holds while it writes.
func (s *store) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of the progress: %w", err)
	}
	lock := flock.New(filepath.Join(s.dir, name))
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another make learn to finish writing (%s): %w", lock.Path(), err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// errOpen is that another runner watches the exercises of this repository.
var errOpen = errors.New("make learn is already open in this repository")

// open takes the lock of the one runner that watches. The system releases it when the process ends, however that ends.
func (s *store) open() (release func(), err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of the progress: %w", err)
	}
	path := filepath.Join(s.dir, "open.lock")
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !locked {
		holder := "another terminal"
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			holder = string(text)
		}
		return nil, fmt.Errorf("%w, in %s: go on there, or quit it first; make learn run ID works beside it", errOpen, holder)
	}
	// The text is for others to read; only the lock itself decides. On a full disk it stays empty.
	_ = os.WriteFile(path, fmt.Appendf(nil, "process %d", os.Getpid()), 0o644)
	return func() {
		_ = os.Truncate(path, 0)
		_ = lock.Unlock()
	}, nil
}
