package config

import "os"

// WriteFile replaces a file in one step: a reader never sees half of it, and where the disk is full it stays as it was.
// Only its owner can read it.
func WriteFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
