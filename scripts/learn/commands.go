package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"example.com/workbook/shared/exercise"
)

const usage = `make learn                opens the next exercise, and checks your code each time you save it
make learn ID             opens the exercise with that ID, as in make learn 04a
make learn list           lists all exercises, and which are done
make learn run ID         checks one exercise, as in make learn run 09a
make learn hint ID        shows the next hint
make learn reset ID       restores the original files; yours are copied first
make learn solution ID    shows the solution
make learn adopt ID       replaces your files by the solution; yours are copied first
make learn check-all      checks all exercises that you have started
make learn progress       shows how many exercises are done

You edit only files in NN-stage/exercises/work/ID-name/, which git ignores; for Part 0 those of your project in ../my-lolcow, and for
25a those in ../teapot. The progress and the copies of replaced files are in .learn/ at the top of the repository.
Exit codes of run and check-all, and of make learn without a terminal, where it checks the exercise once: 0 done, 1 not yet done,
2 the check could not run. make exits with 2 in both cases of failure; scripts/learn.sh run 09a keeps the exit code.
`

// commands are what the reader types after make learn.
type commands struct {
	*runner
	out, log io.Writer
	// terminal is set if there is one that can show the screen.
	terminal bool
}

func (c *commands) run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return c.openNext(ctx)
	}
	name, args := args[0], args[1:]
	plain := map[string]func(context.Context) (int, error){"list": c.list, "check-all": c.checkAll, "progress": c.progress}
	if command, found := plain[name]; found {
		if len(args) > 0 {
			return exitCannot, fmt.Errorf("%s takes no arguments: %q is not expected", name, strings.Join(args, " "))
		}
		return command(ctx)
	}
	ofOne := map[string]func(context.Context, exercise.Exercise, string) (int, error){
		"run": c.runOne, "hint": c.hint, "reset": c.resetOne, "solution": c.showSolution, "adopt": c.adoptOne,
	}
	command, found := ofOne[name]
	if !found {
		return c.open(ctx, name, args)
	}
	variant := ""
	if len(args) == 2 && (name == "solution" || name == "adopt") {
		variant, args = args[1], args[:1]
	}
	if len(args) != 1 {
		return exitCannot, fmt.Errorf("%s needs the ID of one exercise, as in make learn %s %s", name, name, c.exercises[0].ID)
	}
	i, err := c.index(args[0])
	if err != nil {
		return exitCannot, err
	}
	return command(ctx, c.exercises[i], variant)
}

func (c *commands) print(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(c.out, line)
	}
}

func (c *commands) note(text string) { fmt.Fprintln(c.log, "==>", text) }

// open shows the screen on the exercise that is typed in place of a command. Without a terminal it checks it once.
func (c *commands) open(ctx context.Context, id string, more []string) (int, error) {
	at, err := c.index(id)
	switch {
	case err != nil && id != "" && id[0] >= '0' && id[0] <= '9': // an ID begins with the number of its chapter
		return exitCannot, err
	case err != nil:
		return exitCannot, fmt.Errorf("there is no command %q\n\n%s", id, usage)
	case len(more) > 0:
		return exitCannot, fmt.Errorf("%s takes no arguments: %q is not expected", id, strings.Join(more, " "))
	case c.terminal:
		return c.watch(ctx, id)
	}
	return c.runOne(ctx, c.exercises[at], "")
}

// openNext shows the screen on the next exercise. Without a terminal it checks it once.
func (c *commands) openNext(ctx context.Context) (int, error) {
	if c.terminal {
		return c.watch(ctx, "")
	}
	p, err := c.store.load()
	if err != nil {
		return exitCannot, err
	}
	at, all := c.next(p)
	if all {
		c.print("all exercises are done")
		return exitDone, nil
	}
	e := c.exercises[at]
	c.print(head.Render(e.ID + " " + e.Name + ": " + e.Title))
	return c.runOne(ctx, e, "")
}

// runOne checks one exercise. It begins again if the files change during the check, but not for ever.
func (c *commands) runOne(ctx context.Context, e exercise.Exercise, _ string) (int, error) {
	begun, err := c.begin(e)
	if err != nil {
		return exitCannot, err
	}
	if begun {
		c.note("the start is copied to " + c.short(e.WorkDir()) + ": edit it there")
	}
	// If this cannot be written, the result of the check cannot be either, and that is reported below.
	_ = c.store.change(ctx, func(p *progress) { p.Current = e.ID })
	const attempts = 5
	for range attempts {
		result, err := c.check(ctx, e, c.note)
		if err != nil {
			return exitCannot, fmt.Errorf("%s was not checked: %w", e.ID, err)
		}
		if result.Moved {
			c.note("the files changed during the check: checking again")
			continue
		}
		c.print(report(e, result.Result)...)
		if result.Unsaved != nil {
			c.note(result.Unsaved.Error())
		}
		if !result.OK() {
			c.print(faint.Render("your files: " + c.short(e.WorkDir())))
			return exitNotYet, nil
		}
		c.print("", faint.Render(c.whatNext(e)))
		return exitDone, nil
	}
	return exitCannot, fmt.Errorf("%s was not checked: the files changed during each of %d checks", e.ID, attempts)
}

// whatNext is what to type after a check that passed.
func (c *commands) whatNext(e exercise.Exercise) string {
	compare := "solutions to compare with: make learn solution " + e.ID
	p, err := c.store.load()
	if err != nil {
		return compare
	}
	this, err := c.index(e.ID)
	if err != nil {
		return compare
	}
	at, all := c.undone(p, this+1)
	if all {
		return "all exercises are done    " + compare
	}
	return "next: make learn " + c.exercises[at].ID + "    " + compare
}

// hint shows the hints so far and one more.
func (c *commands) hint(ctx context.Context, e exercise.Exercise, _ string) (int, error) {
	lines, err := c.moreHints(ctx, e)
	if err != nil {
		return exitCannot, err
	}
	c.print(lines...)
	return exitDone, nil
}

func (r *runner) moreHints(ctx context.Context, e exercise.Exercise) ([]string, error) {
	hints, err := e.Hints()
	if err != nil {
		return nil, fmt.Errorf("reading the hints of %s: %w", e.ID, err)
	}
	if len(hints) == 0 {
		return []string{e.ID + " has no hints"}, nil
	}
	shown := 0
	err = r.store.change(ctx, func(p *progress) {
		p.edit(e.ID, func(record *record) {
			record.Hints = min(record.Hints+1, len(hints))
			shown = record.Hints
		})
	})
	var p page
	if err != nil { // the reader gets the hint all the same
		p.add(warn, fmt.Sprintf("which hints were shown is not remembered: %v", err))
		shown = len(hints)
	}
	for i, hint := range hints[:shown] {
		p.add(head, fmt.Sprintf("hint %d of %d", i+1, len(hints)))
		for _, line := range r.markdown(hint, e.Dir) {
			p.lines = append(p.lines, strings.TrimRight("  "+line, " "))
		}
	}
	if shown == len(hints) {
		p.add(faint, "these are all hints; what is left is the solution: make learn solution "+e.ID)
	}
	return p.lines, nil
}

func (c *commands) resetOne(_ context.Context, e exercise.Exercise, _ string) (int, error) {
	kept, err := c.reset(e)
	c.sayKept(kept)
	if err != nil {
		return exitCannot, err
	}
	c.print("the start of " + e.ID + " is in " + c.short(e.WorkDir()))
	return exitDone, nil
}

func (c *commands) adoptOne(ctx context.Context, e exercise.Exercise, variant string) (int, error) {
	if e.Part0 {
		if err := c.adoptStep(ctx, e); err != nil {
			return exitCannot, err
		}
		return exitDone, nil
	}
	kept, err := c.adopt(e, variant)
	c.sayKept(kept)
	if err != nil {
		return exitCannot, err
	}
	c.print("the solution of " + e.ID + " is in " + c.short(e.WorkDir()))
	return exitDone, nil
}

func (c *commands) sayKept(kept string) {
	if kept != "" {
		c.print("your files are kept in " + c.short(kept))
	}
}

func (c *commands) showSolution(_ context.Context, e exercise.Exercise, variant string) (int, error) {
	lines, err := c.solutionLines(e, variant)
	if err != nil {
		return exitCannot, err
	}
	c.print(lines...)
	return exitDone, nil
}

// solutionLines shows one solution, or all.
func (r *runner) solutionLines(e exercise.Exercise, name string) ([]string, error) {
	first, err := r.solution(e, name)
	if err != nil {
		return nil, err
	}
	shown := []exercise.Solution{first}
	if name == "" {
		if shown, err = e.Solutions(); err != nil {
			return nil, fmt.Errorf("reading the solutions of %s: %w", e.ID, err)
		}
	}
	var lines []string
	for i, v := range shown {
		text, err := solutionPage(r, v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, text...)
	}
	return lines, nil
}
