package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"example.com/workbook/shared/exercise"
)

// The steps of Part 0 go on with one project of the reader's, beside the repository. A script makes it.
const projectScript = "scripts/my-lolcow.sh"

// errNoProject is that a project of the reader's own does not exist yet.
var errNoProject = errors.New("there is no project yet")

func (r *runner) noProject(e exercise.Exercise) error {
	how, others := "the task of "+e.ID+" says how to make it", ""
	if e.Part0 {
		how, others = projectScript+" new makes it, in some minutes", "; the exercises after Part 0 need none: make learn list"
	}
	return fmt.Errorf("%w: %s; your project is then in %s%s", errNoProject, how, r.short(e.WorkDir()), others)
}

// noStart says what is done in place of laying a start down.
func (r *runner) noStart(e exercise.Exercise) error {
	instead := "delete or rename " + r.short(e.WorkDir()) + ", and make it anew"
	if e.Part0 {
		instead = "make learn adopt lays down the solution of the step before"
	}
	return fmt.Errorf("%s goes on with your project, so it has no start of its own: %s", e.ID, instead)
}

// adoptStep has the script lay the solutions of a step and of those before it into the project. It keeps a copy of what it
// replaces, and says where.
func (c *commands) adoptStep(ctx context.Context, e exercise.Exercise) error {
	dir := e.WorkDir()
	if digest(dir) == "" {
		return c.noProject(e)
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

// begun reports whether there is something of the reader's to check. The steps of Part 0 have one project in common.
func (r *runner) begun(p *progress, e exercise.Exercise) bool {
	if e.Part0 && !p.done(e.ID) && p.Exercises[e.ID].Checks == 0 {
		return false
	}
	return digest(e.WorkDir()) != ""
}

// proven are the exercises that a check shows to be done: a step of Part 0 asks for all before it, too.
func (r *runner) proven(e exercise.Exercise) []exercise.Exercise {
	if !e.Part0 {
		return []exercise.Exercise{e}
	}
	i := slices.IndexFunc(r.exercises, func(one exercise.Exercise) bool { return one.ID == e.ID })
	return r.exercises[:i+1]
}
