package usedfield

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"example.com/workbook/02-lolcow/exercises/internal/program"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise/check"
)

// open returns the folder of the project: the reader's, or a new copy, changed as a solution or a mutant says.
func (p *project) open(b *check.B, dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return dir
	}
	root, err := config.Repo()
	if err != nil {
		b.Fatalf("%v", err)
	}
	temp, err := os.MkdirTemp("", "used-field-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	p.ends = append(p.ends, func() { _ = os.RemoveAll(temp) })
	copied := filepath.Join(temp, "teapot")
	begin(b, root, copied)
	lay(b, dir, copied)
	return copied
}

// lay changes a copy by the patches and by the Go files that are in a folder.
func lay(b *check.B, dir, copied string) {
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file := filepath.Join(dir, path)
		switch filepath.Ext(path) {
		case ".patch":
			// Without the ceiling git would take the paths as those of a repository that the folder is in.
			program.Run(b, copied, []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(copied)}, "git", "apply", "--whitespace=nowarn", file)
		case ".go":
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(copied, path), content, 0o600)
		}
		return nil
	})
	if err != nil {
		b.Fatalf("changing the copy: %v", err)
	}
}

// begin writes what a start, a solution or a mutant begins with: a copy as make starter makes it. It is made once, and anew after a
// change of what it is made of.
func begin(b *check.B, root, copied string) {
	home := filepath.Join(root, "_artifacts", "used-field")
	kept, stamp := filepath.Join(home, "teapot"), filepath.Join(home, "stamp")
	err := os.MkdirAll(home, 0o755)
	lock := flock.New(filepath.Join(home, "lock"))
	if err == nil {
		_, err = lock.TryLockContext(b.Context(), 100*time.Millisecond)
	}
	if err != nil {
		b.Fatalf("%v", err)
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(stamp); err != nil || program.Run(b, root, nil,
		// Also a folder from which a file was deleted.
		"find", "02-lolcow", "shared", "scripts", "(", "-name", "exercises", "-o", "-name", "bin", "-o", "-name", "_artifacts", ")", "-prune",
		"-o", "-newer", stamp, "-print") != "" {
		keep(b, root, kept, stamp)
	}
	if err := os.CopyFS(copied, os.DirFS(kept)); err != nil {
		b.Fatalf("copying %s: %v", kept, err)
	}
}

// keep makes a copy. The file stamp has the time of that.
func keep(b *check.B, root, kept, stamp string) {
	began := time.Now()
	// Outside: make starter writes nothing into this repository.
	made, err := os.MkdirTemp("", "used-field-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	defer os.RemoveAll(made)
	program.Run(b, root, []string{"GOWORK="}, "make", "starter", "STAGE=2", "DEST="+made,
		"MODULE=example.com/teapot", "DOMAIN=teapots.dev", "KIND=Teapot")
	if err := errors.Join(os.RemoveAll(kept), os.CopyFS(kept, os.DirFS(made))); err != nil {
		b.Fatalf("keeping a copy: %v", err)
	}
	if err := errors.Join(os.WriteFile(stamp, nil, 0o600), os.Chtimes(stamp, began, began)); err != nil {
		b.Fatalf("keeping the time of a copy: %v", err)
	}
}
