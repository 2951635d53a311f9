package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"example.com/workbook/shared/exercise"
)

// The steps of Part 0 go on with one project of the reader's, beside the repository. A script makes it.
const projectScript = "scripts/my-lolcow.sh"

// workDir is the folder that the reader edits for an exercise.
func (r *runner) workDir(e exercise.Exercise) string {
	if !e.Part0 {
		return e.WorkDir()
	}
	dir := os.Getenv("MY_LOLCOW")
	if dir == "" {
		return filepath.Join(filepath.Dir(r.root), "my-lolcow")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.root, dir)
	}
	return dir
}

// errNoProject is that the project of Part 0 does not exist yet.
var errNoProject = errors.New("there is no project yet")

func (r *runner) noProject() error {
	return fmt.Errorf("%w: %s new makes it, in some minutes; your project is then in %s", errNoProject, projectScript, r.short(r.workDir(exercise.Exercise{Part0: true})))
}

// adoptStep has the script lay the solutions of a step and of those before it into the project. It keeps a copy of what it
// replaces, and says where.
func (c *commands) adoptStep(ctx context.Context, e exercise.Exercise) error {
	dir := c.workDir(e)
	if digest(dir) == "" {
		return c.noProject()
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.root, projectScript), "adopt", e.ID, dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.root, c.out, c.log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s adopt %s: %w", projectScript, e.ID, err)
	}
	return nil
}
