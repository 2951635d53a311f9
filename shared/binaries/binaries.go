// Package binaries provides the programs that the clusters and the node image are made of, each
// from the first place that has it: KUBEBUILDER_ASSETS, the cache, a download, a build from the Go
// module proxy.
package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"example.com/workbook/shared/config"
)

// Ensure returns a folder that holds every program asked for, and makes those that are missing. It
// is the same folder for any set of names, as long as the pinned versions and KUBEBUILDER_ASSETS stay
// the same. Progress goes to out, and so does, once in a process for each place, the reason why nothing
// can be downloaded from there; a build is the last resort. Processes that need the same program at once build it once: the others wait and say
// so. It fails for a name that is not in Names, for a download with a wrong checksum, and when a build
// fails.
func Ensure(ctx context.Context, out io.Writer, names ...string) (dir string, err error) {
	s, err := newStore()
	if err != nil {
		return "", err
	}
	return s.ensure(ctx, out, names...)
}

// Set returns the folder that Ensure does, and makes no program. Its name tells which programs it is for.
func Set() (dir string, err error) {
	s, err := newStore()
	if err != nil {
		return "", err
	}
	return s.set()
}

// store is the cache: one file per program and version, and folders of links to them.
type store struct {
	dir        string
	assets     string
	components map[string]component
	publishers []*publisher
	// build makes one component's program in a folder.
	build func(ctx context.Context, out io.Writer, c component, into string) error
}

func newStore() (store, error) {
	cache, err := config.CacheDir()
	if err != nil {
		return store{}, err
	}
	// A link leads to the same set of programs as what it leads to.
	cache, err = filepath.EvalSymlinks(cache)
	return store{
		dir: filepath.Join(cache, "binaries", runtime.GOOS+"-"+runtime.GOARCH), assets: os.Getenv("KUBEBUILDER_ASSETS"),
		components: components(), publishers: publishers(), build: build,
	}, err
}

func (s store) ensure(ctx context.Context, out io.Writer, names ...string) (string, error) {
	set, err := s.set()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		c, known := s.components[name]
		if !known {
			return "", fmt.Errorf("the harness knows no program called %q", name)
		}
		target := s.target(c)
		if !exists(target) {
			if err := s.make(ctx, out, c); err != nil {
				return "", err
			}
		}
		if err := link(target, filepath.Join(set, name)); err != nil {
			return "", fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return set, nil
}

// set creates the folder of links. Its name follows from where each program comes from, so a change
// of version or of KUBEBUILDER_ASSETS gives another folder and none ever holds a stale link.
func (s store) set() (string, error) {
	hash := sha256.New()
	for _, name := range sortedKeys(s.components) {
		fmt.Fprintln(hash, name, s.target(s.components[name]))
	}
	id := hex.EncodeToString(hash.Sum(nil))[:8]
	dir := filepath.Join(s.dir, "sets", config.Get("KUBERNETES_VERSION")+"-"+id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder for binaries: %w", err)
	}
	return dir, nil
}

// target is the file that a program's name is linked to, whether it is there yet or not. The assets may be a set, which
// is links: it is the same one.
func (s store) target(c component) string {
	if s.assets != "" {
		path, err := filepath.EvalSymlinks(filepath.Join(s.assets, c.name))
		if err == nil && exists(path) {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
	}
	return s.cached(c)
}

func (s store) cached(c component) string {
	return filepath.Join(s.dir, c.name+"-"+c.version)
}

// make puts a missing program into the cache, under a lock that other processes respect.
func (s store) make(ctx context.Context, out io.Writer, c component) error {
	unlock, err := s.lock(ctx, out, c)
	if err != nil {
		return fmt.Errorf("locking %s: %w", c.name, err)
	}
	defer unlock()
	if exists(s.cached(c)) { // the process that held the lock has made it
		return nil
	}

	// The lock makes this name ours alone; what is there was left by a run that was killed.
	temp := s.cached(c) + ".partial"
	if err := removeAll(temp); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return fmt.Errorf("creating a folder to build in: %w", err)
	}
	defer func() { _ = removeAll(temp) }() // the next build removes it, or says why not

	for _, p := range s.publishers {
		if !p.has(c.name) {
			continue
		}
		names, err := p.download(ctx, out, c, temp)
		if err == nil {
			return s.keep(temp, names...)
		}
		if err := p.giveUp(ctx, out, c, err); err != nil {
			return err
		}
	}
	if err := s.build(ctx, out, c, temp); err != nil {
		return err
	}
	return s.keep(temp, c.name)
}

// keep moves finished programs from temp to their places in the cache, each at once.
func (s store) keep(temp string, names ...string) error {
	for _, name := range names {
		path := filepath.Join(temp, name)
		if err := flush(path); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.Rename(path, s.cached(s.components[name])); err != nil {
			return fmt.Errorf("moving %s into the cache: %w", name, err)
		}
	}
	return nil
}

// flush has the content of a file on disk before its name is: a machine may lose its power.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeAll removes a folder that holds read-only ones: a user who is not root can delete nothing in those.
func removeAll(path string) error {
	// Whatever cannot be changed or read here, RemoveAll says.
	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(path)
}

func (s store) lock(ctx context.Context, out io.Writer, c component) (unlock func(), err error) {
	lock := flock.New(s.cached(c) + ".lock")
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		fmt.Fprintf(out, "==> waiting for another process that is making %s\n", c.name)
		if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
	// The lock file stays: removing it would let two processes hold locks on two files of one name.
	return func() { _ = lock.Unlock() }, nil
}

// link makes path a symbolic link to target, at once, also while another process does the same.
func link(target, path string) error {
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Symlink(target, temp); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Rename(temp, path)
}

// exists reports whether there is a program. An empty file is what a machine that lost its power may leave of one.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}
