package worker

import (
	"fmt"
	"os"
	"path/filepath"
)

// Install copies the running program to a path, where a container of another image runs it. It may be called again while
// the copy runs: it replaces the file and does not write into it.
func Install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program itself: %w", err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("reading the program itself: %w", err)
	}
	if err := writeSynced(path+".new", program, 0o755); err != nil {
		return fmt.Errorf("installing the program: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("installing the program: %w", err)
	}
	return syncDir(filepath.Dir(path))
}
