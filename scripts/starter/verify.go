package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// verify proves the copy: its modules build, vet and are tidy on their own, its tests pass, it runs on
// a cluster of its own, and nothing of the workbook's exercises is in it.
func verify(ctx context.Context, repo string, o options) (err error) {
	if err := noExercises(o.Dest); err != nil {
		return err
	}
	for _, module := range []string{".", "test/e2e", harness + "/shared"} {
		for _, words := range [][]string{{"go", "build", "-o", os.DevNull, "./..."}, {"go", "vet", "./..."}, {"go", "mod", "tidy", "-diff"}} {
			if err := step(module+": "+strings.Join(words, " "), func() error {
				return command(ctx, filepath.Join(o.Dest, module), words...)
			}); err != nil {
				return err
			}
		}
	}
	// What the workbook has built, the copy need not build again.
	cache, err := workbookCache(repo)
	if err != nil {
		return err
	}
	if err := step("make test", func() error { return show(ctx, o.Dest, cache, "make", "test") }); err != nil {
		return err
	}
	defer func() {
		// Also after Ctrl-C: the cluster must not stay.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
		defer cancel()
		err = errors.Join(err, step("make cluster-delete", func() error { return show(ctx, o.Dest, cache, "make", "cluster-delete") }))
	}()
	return step("make e2e", func() error { return show(ctx, o.Dest, cache, "make", "e2e") })
}

func noExercises(dest string) error {
	return filepath.WalkDir(dest, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "exercises" {
			return fmt.Errorf("%s was copied, and should not be", file)
		}
		return err
	})
}

func step(what string, do func() error) error {
	start := time.Now()
	fmt.Printf("==> verifying: %s\n", what)
	if err := do(); err != nil {
		return fmt.Errorf("verifying: %s: %w", what, err)
	}
	fmt.Printf("==> verifying: %s: took %s\n", what, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// show runs a program in dir with its output in front of the reader.
func show(ctx context.Context, dir, cache string, words ...string) error {
	cmd := program(ctx, dir, words...)
	cmd.Env = append(cmd.Env, "HARNESS_CACHE="+cache)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// workbookCache is where the harness of this repository keeps what it has built.
func workbookCache(repo string) (string, error) {
	if dir := os.Getenv("HARNESS_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	content, err := os.ReadFile(filepath.Join(repo, "shared", "config", "harness.env"))
	if err != nil {
		return "", fmt.Errorf("finding the cache: %w", err)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache (set HARNESS_CACHE): %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if project, found := strings.CutPrefix(strings.TrimSpace(line), "PROJECT="); found {
			return filepath.Join(dir, project), nil
		}
	}
	return "", errors.New("finding the cache: harness.env has no PROJECT")
}
