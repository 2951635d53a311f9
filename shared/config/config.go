// Package config says what the harness is called, which versions it uses and where its files are.
package config

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
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

// ClusterName is the name of the cluster to work with: CLUSTER_NAME, else the project's name.
func ClusterName() string { return cmp.Or(os.Getenv("CLUSTER_NAME"), Project()) }

// ContextName is the name of a cluster's entry in the kubeconfig: kind's own habit, for each kind of cluster.
func ContextName(kind, cluster string) string { return kind + "-" + cluster }

// Repo is the root of the repository that uses the harness: the first folder, from the working
// directory upwards, that holds the harness. It fails outside such a repository.
func Repo() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		// The harness inside a starter project is not itself the repository.
		if root := filepath.Dir(filepath.Dir(dir)); filepath.Join(root, embedded) == dir && isStarter(root) {
			return root, nil
		}
		if exists(filepath.Join(dir, marker)) || isStarter(dir) {
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
	if isStarter(repo) {
		return filepath.Join(repo, embedded), nil
	}
	return repo, nil
}

// Stages are the folders of the repository that have a config/crd: its stages, or, in a project made by `make starter`, the
// repository itself.
func Stages() ([]string, error) {
	repo, err := Repo()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, pattern := range []string{"config/crd/kustomization.yaml", "*/config/crd/kustomization.yaml"} {
		found, err := fs.Glob(os.DirFS(repo), pattern)
		if err != nil {
			return nil, fmt.Errorf("finding the stages: %w", err)
		}
		for _, file := range found {
			out = append(out, filepath.Join(repo, filepath.Dir(filepath.Dir(filepath.Dir(file)))))
		}
	}
	return out, nil
}

// isStarter reports whether a folder is the root of a project made by `make starter`. Without a module in it, it is a
// folder in which a clone lies that is called like the harness of one.
func isStarter(dir string) bool {
	return exists(filepath.Join(dir, embedded, marker)) && exists(filepath.Join(dir, "go.mod"))
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
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("HARNESS_CACHE=%s would be another folder for each module: give it an absolute path", dir)
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

// PlainBuild are flags of go build, whatever the reader's GOFLAGS are: without a C library there is neither a race detector
// nor, in an image, an interpreter.
var PlainBuild = []string{"-race=false", "-msan=false", "-asan=false", "-buildmode=default"}
