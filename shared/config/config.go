// Package config says what the harness is called, which versions it uses and where its files are.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed harness.env
var harnessEnv string

// marker is the file that tells a folder with the harness in it from any other.
var marker = filepath.Join("shared", "config", "harness.env")

// embedded is where a project made by `make starter` keeps the harness.
var embedded = filepath.Join("hack", "harness")

var values = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(harnessEnv) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && !strings.HasPrefix(key, "#") {
			out[key] = value
		}
	}
	return out
})

// Get returns the value of a key of harness.env. A key that is not there is a mistake in the
// harness itself, so Get panics.
func Get(key string) string {
	value, ok := values()[key]
	if !ok {
		panic("harness.env has no " + key)
	}
	return value
}

// Project is the name of the clusters and images of the repository that uses the harness.
func Project() string { return Get("PROJECT") }

// Repo is the root of the repository that uses the harness: the first folder, from the working
// directory upwards, that holds the harness. It fails outside such a repository.
func Repo() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		// The harness inside a starter project is not itself the repository.
		if exists(filepath.Join(dir, marker)) && !strings.HasSuffix(dir, embedded) {
			return dir, nil
		}
		if exists(filepath.Join(dir, embedded, marker)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the repository: no folder above this one holds the harness; run from inside the repository")
		}
	}
}

// Harness is the folder that holds shared/ and scripts/: the repository itself, or hack/harness in
// a project made by `make starter`.
func Harness() (string, error) {
	repo, err := Repo()
	if err != nil {
		return "", err
	}
	if exists(filepath.Join(repo, embedded, marker)) {
		return filepath.Join(repo, embedded), nil
	}
	return repo, nil
}

// CacheDir is where binaries, cluster state and lock files are kept: HARNESS_CACHE, or a folder in
// the user's cache folder, one for all projects. It is created if it is missing.
func CacheDir() (string, error) {
	dir := os.Getenv("HARNESS_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache folder (set HARNESS_CACHE): %w", err)
		}
		dir = filepath.Join(user, Get("HARNESS_NAME"))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache folder: %w", err)
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
