package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/workbook/shared/exercise"
)

func (c *commands) list(context.Context) (int, error) {
	p, err := c.store.load()
	if err != nil {
		return exitCannot, err
	}
	at, all := c.next(p)
	for i, e := range c.exercises {
		if heading := c.heading(i); heading != "" {
			c.print(heading)
		}
		mark := "  "
		if i == at && !all {
			mark = "> "
		}
		c.print(mark + c.row(p, e))
	}
	c.print("", fmt.Sprintf("%s done, · begun, > next", markDone))
	return exitDone, nil
}

// heading is what stands above an exercise in a list, if it is the first of Part 0, of the chapters that a stage has in a row, or
// of the capstones.
func (r *runner) heading(i int) string {
	part := func(e exercise.Exercise) string {
		if e.Part0 {
			return "Part 0: Lolcow in a weekend"
		}
		if e.IsCapstone() {
			return "Capstones"
		}
		return e.Stage
	}
	e := r.exercises[i]
	text := part(e)
	if i > 0 && text == part(r.exercises[i-1]) {
		return ""
	}
	if text == e.Stage { // there are chapters of others in between
		text += ", from chapter " + e.Chapter
	}
	return head.Render(text)
}

func (r *runner) row(p *progress, e exercise.Exercise) string {
	mark := " "
	switch {
	case p.done(e.ID):
		mark = good.Render(markDone)
	case r.begun(p, e):
		mark = "·"
	}
	return fmt.Sprintf("%s %-24s %s", mark, e.ID+" "+e.Name, faint.Render(e.Title))
}

// progress says how far the reader is, for each part.
func (c *commands) progress(context.Context) (int, error) {
	p, err := c.store.load()
	if err != nil {
		return exitCannot, err
	}
	type part struct {
		heading   string
		done, all int
	}
	var parts []part
	for i, e := range c.exercises {
		if heading := c.heading(i); heading != "" {
			parts = append(parts, part{heading: heading})
		}
		last := &parts[len(parts)-1]
		last.all++
		if p.done(e.ID) {
			last.done++
		}
	}
	for _, part := range parts {
		c.print(fmt.Sprintf("%3d of %2d  %s %s", part.done, part.all, bar(part.done, part.all), part.heading))
	}
	done := c.doneCount(p)
	c.print(fmt.Sprintf("%3d of %2d  in all", done, len(c.exercises)))
	at, all := c.next(p)
	if all {
		return exitDone, nil
	}
	e := c.exercises[at]
	c.print("", "next: "+e.ID+" "+e.Name+": "+e.Title)
	return exitDone, nil
}

func bar(done, all int) string {
	const width = 20
	filled := done * width / max(all, 1)
	return good.Render(strings.Repeat("█", filled)) + strings.Repeat("░", width-filled)
}

// checkAll checks what the reader has begun. What no longer passes is not done any more.
func (c *commands) checkAll(ctx context.Context) (int, error) {
	p, err := c.store.load()
	if err != nil {
		return exitCannot, err
	}
	begun, missed := 0, 0
	var failures []error
	for _, e := range c.exercises {
		if !c.begun(p, e) {
			continue
		}
		begun++
		result, err := c.check(ctx, e, c.note)
		switch {
		case ctx.Err() != nil:
			return exitCannot, ctx.Err()
		case result.Moved:
			err = errors.New("the files changed during the check")
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s was not checked: %w", e.ID, err))
			continue
		}
		mark := good.Render(markDone)
		if !result.OK() {
			missed++
			mark = bad.Render(markMissed)
			if err := c.store.change(ctx, func(p *progress) { p.edit(e.ID, (*record).undo) }); err != nil {
				c.note(err.Error())
			}
		}
		c.print(fmt.Sprintf("%s %-24s %s", mark, e.ID+" "+e.Name, faint.Render(summary(result.Result))))
	}
	switch {
	case len(failures) > 0:
		return exitCannot, errors.Join(failures...)
	case begun == 0:
		c.print("no exercise is begun: make learn begins the first")
		return exitNotYet, nil
	case missed > 0:
		return exitNotYet, nil
	}
	return exitDone, nil
}

// summary is a result in one line.
func summary(r exercise.Result) string {
	switch {
	case r.CompileError != "":
		return "does not compile"
	case r.OK():
		return seconds(r.Took)
	}
	passed := 0
	for _, b := range r.Behaviours {
		if b.OK {
			passed++
		}
	}
	text := fmt.Sprintf("%d of %s", passed, count(len(r.Behaviours), "behaviour"))
	if r.Died != nil {
		text += ", then " + r.Died.Kind
	}
	return text
}
