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
func verify(ctx context.Context, o options) (err error) {
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
	if err := step("make test", func() error { return show(ctx, o.Dest, "make", "test") }); err != nil {
		return err
	}
	defer func() {
		// Also after Ctrl-C: the cluster must not stay.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
		defer cancel()
		err = errors.Join(err, step("make cluster-delete", func() error { return show(ctx, o.Dest, "make", "cluster-delete") }))
	}()
	return step("make e2e", func() error { return show(ctx, o.Dest, "make", "e2e") })
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
func show(ctx context.Context, dir string, words ...string) error {
	cmd := program(ctx, dir, words...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
