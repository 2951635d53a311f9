package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Explain adds to an error what to do where a file of the harness belongs to another user: after one command under
// sudo, files of root are in the cache and in the repository.
func Explain(err error) error {
	var denied *fs.PathError
	if !errors.As(err, &denied) || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	path, uid := ownedByOther(denied.Path, os.Geteuid())
	if path == "" {
		return err
	}
	return fmt.Errorf("%w\n%s belongs to the user with the id %d, as after a command under sudo; give it back: sudo chown -R \"$(id -u)\" '%s'",
		err, path, uid, path)
}

// ownedByOther returns the topmost folder or file on the way to path that belongs to another user than me, below one that
// belongs to me.
func ownedByOther(path string, me int) (top string, uid int) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", 0
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			continue // it is not there, or not to be seen
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if owner == me {
			return top, uid
		}
		top, uid = path, owner
	}
	return "", 0
}
