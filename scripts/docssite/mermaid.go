package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The script that draws the diagrams. No Go module has it; npm has, and a reader without npm, or without a network, sees
// the diagrams' text.
const (
	mermaidPackage = "mermaid@12.3.0"
	mermaidFile    = "package/dist/mermaid.min.js"
	mermaidSHA256  = "336df803d87a38b70a01e736e666c8f7601d2ce42f5e47c8fafe5d721074b9a3"
	mermaidName    = "mermaid-12.3.0.min.js" // in the cache
)

var errNoScript = errors.New("there is no script that draws them")

// addMermaid puts the script into the site, from the cache or by npm.
func addMermaid(ctx context.Context, out io.Writer, site string) error {
	script, err := mermaid(ctx)
	switch {
	case errors.Is(err, errNoScript) && ctx.Err() == nil: // Ctrl-C ends npm too
		fmt.Fprintf(out, "the diagrams are shown as text: %v\n", err)
		script = nil
	case err != nil:
		return fmt.Errorf("getting the script that draws diagrams: %w", err)
	}
	return writeFile(filepath.Join(site, "mermaid.min.js"), script)
}

func mermaid(ctx context.Context) ([]byte, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cache, mermaidName)
	if script, err := os.ReadFile(file); err == nil && isMermaid(script) {
		return script, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, fmt.Errorf("%w: npm, which has it, is missing", errNoScript)
	}
	temp, err := os.MkdirTemp("", "docssite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", "--pack-destination", temp, mermaidPackage)
	pack.Dir, pack.Stderr = temp, os.Stderr
	if err := pack.Run(); err != nil {
		return nil, fmt.Errorf("%w: npm pack %s: %w", errNoScript, mermaidPackage, err)
	}
	archives, err := filepath.Glob(filepath.Join(temp, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, fmt.Errorf("npm pack %s left %d archives (%w)", mermaidPackage, len(archives), err)
	}
	script, err := extract(archives[0], mermaidFile)
	if err != nil {
		return nil, err
	}
	if !isMermaid(script) {
		return nil, fmt.Errorf("%s of %s is not the file that is pinned here", mermaidFile, mermaidPackage)
	}
	return script, writeFile(file, script)
}

func isMermaid(script []byte) bool {
	sum := sha256.Sum256(script)
	return hex.EncodeToString(sum[:]) == mermaidSHA256
}

// cacheDir is the folder in which all of this repository keeps what takes long to get: see package config in shared.
func cacheDir() (string, error) {
	if dir := os.Getenv("HARNESS_CACHE"); dir != "" {
		return dir, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set HARNESS_CACHE): %w", err)
	}
	return filepath.Join(user, "operator-harness"), nil
}

// extract reads one file of an archive.
func extract(archive, name string) ([]byte, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}
