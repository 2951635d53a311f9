package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"example.com/workbook/shared/exercise"
)

// checker runs the checks of exercises. It keeps API servers alive between them.
type checker interface {
	Check(ctx context.Context, e exercise.Exercise, dir string, note func(string)) (exercise.Result, error)
	Close() error
}

// pool is the checker that readers have.
type pool struct {
	servers *exercise.Servers
	// starts are those of the API server that checks share. Each goes on while its check ends, until the program does.
	starts sync.WaitGroup
	ends   context.Context
	end    context.CancelFunc
}

func newPool(root string) checker {
	p := &pool{servers: exercise.NewServers(root)}
	p.ends, p.end = context.WithCancel(context.Background())
	return p
}

func (p *pool) Check(ctx context.Context, e exercise.Exercise, dir string, note func(string)) (exercise.Result, error) {
	if (e.Needs == exercise.APIServer || e.Needs == exercise.Manager) && !e.OwnServer {
		// It starts while the compiler works. If it does not, the run says why.
		p.starts.Go(func() { _ = p.servers.Start(p.ends, note) })
	}
	return exercise.Run(ctx, e, dir, exercise.Options{Servers: p.servers, Note: note})
}

func (p *pool) Close() error {
	p.end()
	p.starts.Wait()
	return p.servers.Close()
}

// runner is what the commands and the screen have in common.
type runner struct {
	root      string
	exercises []exercise.Exercise
	store     *store
	checker   checker
	// open is held for reading by each check that is under way.
	open   sync.RWMutex
	closed bool
}

func newRunner(root string, c checker) (*runner, error) {
	exercises, err := exercise.List(root)
	if err != nil {
		return nil, fmt.Errorf("reading the exercises: %w", err)
	}
	if len(exercises) == 0 {
		return nil, errors.New("there are no exercises in this repository")
	}
	return &runner{root: root, exercises: exercises, store: newStore(root), checker: c}, nil
}

// close waits for the check that is under way and ends what the checks left running. No check begins after it.
func (r *runner) close() error {
	r.open.Lock()
	defer r.open.Unlock()
	r.closed = true
	return r.checker.Close()
}

// index finds an exercise by its ID, its name, or both as in 09a-the-loop.
func (r *runner) index(id string) (int, error) {
	for i, e := range r.exercises {
		if id == e.ID || id == e.Name || id == filepath.Base(e.Dir) {
			return i, nil
		}
	}
	if ids := r.similar(id); len(ids) > 0 {
		return 0, fmt.Errorf("there is no exercise %s: did you mean %s?", id, strings.Join(ids, " or "))
	}
	return 0, fmt.Errorf("there is no exercise %q: make learn list shows all", id)
}

// similar are the IDs that someone may mean who typed one that does not exist: 04a for 4a and 4A, and 04a, 04b, 04c for 04.
func (r *runner) similar(typed string) []string {
	plain := func(id string) string { return strings.TrimLeft(strings.ToLower(id), "0") }
	var ids []string
	if plain(typed) == "" {
		return nil
	}
	for _, e := range r.exercises {
		if slices.Contains([]string{plain(e.ID), plain(e.Chapter), plain(e.Name), plain(filepath.Base(e.Dir))}, plain(typed)) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// next is the exercise to open: the one that was open last, or the first after it that is not done. all is set if
// every exercise is done.
func (r *runner) next(p *progress) (at int, all bool) {
	if i, err := r.index(p.Current); p.Current != "" && err == nil {
		at = i
	}
	return r.undone(p, at)
}

// undone is the first exercise from one on that is not done. After the last come those before it. all is set if every
// exercise is done.
func (r *runner) undone(p *progress, from int) (at int, all bool) {
	from %= len(r.exercises)
	for n := range r.exercises {
		i := (from + n) % len(r.exercises)
		if !p.done(r.exercises[i].ID) {
			return i, false
		}
	}
	return from, true
}

func (r *runner) doneCount(p *progress) int {
	done := 0
	for _, e := range r.exercises {
		if p.done(e.ID) {
			done++
		}
	}
	return done
}

// begin copies the start of an exercise to the reader's folder, if there is nothing yet.
func (r *runner) begin(e exercise.Exercise) (begun bool, err error) {
	before, err := readFolder(e.WorkDir())
	if err != nil {
		return false, fmt.Errorf("reading your files in %s: %w", r.short(e.WorkDir()), err)
	}
	if len(before) > 0 {
		return false, nil
	}
	if e.Project != "" {
		return false, r.noProject(e)
	}
	start, err := startOf(e)
	if err != nil {
		return false, err
	}
	if err := start.write(e.WorkDir()); err != nil {
		return false, fmt.Errorf("copying the start of %s to %s: %w", e.ID, r.short(e.WorkDir()), err)
	}
	return true, nil
}

func startOf(e exercise.Exercise) (files, error) {
	start, err := e.Start()
	if err != nil {
		return nil, fmt.Errorf("reading the start of %s: %w", e.ID, err)
	}
	return filesOf(start), nil
}

func filesOf(list []exercise.File) files {
	out := files{}
	for _, f := range list {
		out[f.Path] = f.Content
	}
	return out
}

// reset lays the start down again, and returns where the copy of the reader's work is.
func (r *runner) reset(e exercise.Exercise) (string, error) {
	if e.Project != "" {
		return "", r.noStart(e)
	}
	start, err := startOf(e)
	if err != nil {
		return "", err
	}
	return start.lay(e.WorkDir(), r.kept(e))
}

// adopt lays the first solution down, or the one with that name, and returns where the copy of the reader's work is.
func (r *runner) adopt(e exercise.Exercise, name string) (string, error) {
	if e.Project != "" {
		return "", fmt.Errorf("the solution of %s is a change of your project: make learn solution %s shows it", e.ID, e.ID)
	}
	solution, err := r.solution(e, name)
	if err != nil {
		return "", err
	}
	list, err := solution.Files()
	if err != nil {
		return "", fmt.Errorf("reading the solution of %s: %w", e.ID, err)
	}
	return filesOf(list).lay(e.WorkDir(), r.kept(e))
}

func (r *runner) solution(e exercise.Exercise, name string) (exercise.Solution, error) {
	solutions, err := e.Solutions()
	if err != nil {
		return exercise.Solution{}, fmt.Errorf("reading the solutions of %s: %w", e.ID, err)
	}
	if len(solutions) == 0 {
		return exercise.Solution{}, fmt.Errorf("%s has no solution", e.ID)
	}
	if name == "" {
		return solutions[0], nil
	}
	i := slices.IndexFunc(solutions, func(v exercise.Solution) bool { return v.Name == name })
	if i < 0 {
		var names []string
		for _, v := range solutions {
			names = append(names, v.Name)
		}
		return exercise.Solution{}, fmt.Errorf("%s has no solution %q: it has %s", e.ID, name, strings.Join(names, ", "))
	}
	return solutions[i], nil
}

func (r *runner) kept(e exercise.Exercise) string {
	return filepath.Join(r.store.dir, "kept", filepath.Base(e.Dir)+"-"+r.store.now().Format("20060102-150405"))
}

// short is a path as the reader types it at the top of the repository.
func (r *runner) short(path string) string {
	if relative, err := filepath.Rel(r.root, path); err == nil {
		return relative
	}
	return path
}

// errGone is that the reader's folder has no file.
var errGone = errors.New("there is no file to check")

// verdict is what a check found.
type verdict struct {
	exercise.Result
	// Moved is set if the files changed during the check: the result is of files that are no longer there.
	Moved bool
	// Unsaved is why the progress could not be written. The result is valid all the same.
	Unsaved error
}

// check checks the reader's work and remembers the result. The error is about the circumstances.
func (r *runner) check(ctx context.Context, e exercise.Exercise, note func(string)) (verdict, error) {
	r.open.RLock()
	defer r.open.RUnlock()
	if r.closed {
		return verdict{}, context.Canceled
	}
	before := digest(e.WorkDir())
	switch {
	case before == "" && e.Project != "":
		return verdict{}, r.noProject(e)
	case before == "":
		return verdict{}, fmt.Errorf("%w in %s", errGone, r.short(e.WorkDir()))
	}
	result, err := r.checker.Check(ctx, e, e.WorkDir(), note)
	switch {
	case ctx.Err() != nil:
		return verdict{}, ctx.Err()
	case digest(e.WorkDir()) != before:
		return verdict{Moved: true}, nil
	case err != nil:
		return verdict{}, err
	}
	err = r.store.change(ctx, func(p *progress) {
		p.edit(e.ID, func(record *record) { record.Checks++ })
		if !result.OK() {
			return
		}
		for _, one := range r.proven(e) {
			p.edit(one.ID, func(record *record) {
				if record.Done.IsZero() {
					record.Done = r.store.now().UTC()
				}
			})
		}
	})
	return verdict{Result: result, Unsaved: err}, nil
}
