package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"example.com/workbook/shared/exercise"
)

// The marks are text: a screen without colours says the same.
const (
	markDone   = "✓"
	markMissed = "✗"
)

var (
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	head  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	warn  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// How much is shown of what the reader's code printed, and of what happened: the end of it.
const outputLines, timelineLines = 15, 20

// report is the result of a check in lines: what is missing first, then what passed, then what helps.
func report(e exercise.Exercise, r exercise.Result) []string {
	var p page
	switch {
	case r.CompileError != "":
		p.add(bad, markMissed+" your code does not compile")
		p.block("  ", r.CompileError)
	case r.OK():
		p.add(good.Bold(true), fmt.Sprintf("%s %s is done: %s in %s", markDone, e.ID, count(len(r.Behaviours), "behaviour"), seconds(r.Took)))
		p.passed(r)
		return p.lines
	default:
		p.died(r)
		p.missed(r)
	}
	p.passed(r)
	p.blockUnder("What is probably wrong:", r.Diagnosis)
	p.blockUnder("Another wrong answer that misses the same, for a reason that may not be yours:", r.Alike)
	p.blockUnder("The race detector reports:", r.Race)
	p.blockUnder("Your code printed:", lastLines(withoutStack(r), outputLines))
	again := "again: make learn run " + e.ID
	if !e.IsCapstone() { // which has no hints
		again += "    hint: make learn hint " + e.ID
	}
	p.lines = append(p.lines, "", faint.Render(fmt.Sprintf("%s    (%s)", again, seconds(r.Took))))
	return p.lines
}

// page collects lines.
type page struct{ lines []string }

func (p *page) add(style lipgloss.Style, text string) {
	for line := range strings.Lines(clean(text)) {
		p.lines = append(p.lines, style.Render(strings.TrimRight(line, "\n")))
	}
}

func (p *page) block(indent, text string) {
	for line := range strings.Lines(strings.TrimRight(clean(text), "\n")) {
		p.lines = append(p.lines, indent+strings.TrimRight(line, "\n"))
	}
}

func (p *page) blockUnder(heading, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	p.lines = append(p.lines, "", head.Render(heading))
	p.block("  ", text)
}

// died says how the reader's code ended the run.
func (p *page) died(r exercise.Result) {
	if r.Died == nil {
		return
	}
	text := map[string]string{
		"panic": "your code panics", "exit": "your code ends the program", "loop": "your code does not return",
	}[r.Died.Kind]
	if text == "" {
		text = "the run ended early (" + r.Died.Kind + ")"
	}
	if r.Died.Line != "" {
		text += ", at " + r.Died.Line
	}
	p.add(bad, markMissed+" "+text)
	if r.Died.Behaviour != "" {
		p.block("  ", "while this was checked: "+r.Died.Behaviour)
	}
	p.block("  ", r.Died.Message)
}

// missed shows the behaviours that are missing, and the timeline of the first: the others often follow from it.
func (p *page) missed(r exercise.Result) {
	first := true
	for _, b := range r.Behaviours {
		if b.OK || r.Died != nil && b.Name == r.Died.Behaviour && b.Seen == "" {
			continue
		}
		p.add(bad, markMissed+" "+b.Name)
		if b.Seen != "" {
			p.block("  ", b.Seen)
		}
		if first && len(b.Timeline) > 0 {
			p.lines = append(p.lines, "  "+head.Render("what happened:"))
			p.block("    ", lastLines(strings.Join(b.Timeline, "\n"), timelineLines))
		}
		first = false
	}
}

func (p *page) passed(r exercise.Result) {
	for _, b := range r.Behaviours {
		if b.OK {
			p.add(good, markDone+" "+b.Name)
		}
	}
}

// withoutStack is what the reader's code printed before it panicked: the line of the panic is shown already.
func withoutStack(r exercise.Result) string {
	if r.Died == nil || r.Died.Kind != "panic" {
		return r.Output
	}
	var b strings.Builder
	for line := range strings.Lines(r.Output) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// clean removes what would move the cursor or change the colours: the text comes from the reader's code.
func clean(text string) string {
	text = strings.ReplaceAll(ansi.Strip(text), "\t", "    ")
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c == 0x7f {
			return -1
		}
		return c
	}, text)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return fmt.Sprintf("(%d lines before)\n%s", len(lines)-n, strings.Join(lines[len(lines)-n:], "\n"))
}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// failure is an error of the circumstances, in the reader's words.
func (r *runner) failure(e exercise.Exercise, err error) []string {
	var p page
	p.add(bad, fmt.Sprintf("%s %s was not checked", markMissed, e.ID))
	p.block("  ", err.Error())
	return p.lines
}

// solutionPage is a solution as text: why it is right, and its files.
func solutionPage(r *runner, v exercise.Solution) ([]string, error) {
	list, err := v.Files()
	if err != nil {
		return nil, fmt.Errorf("reading the solution: %w", err)
	}
	var p page
	p.add(head, v.Name)
	p.block("", v.Text)
	for _, f := range list {
		p.lines = append(p.lines, "", faint.Render(r.short(filepath.Join(v.Dir, f.Path))))
		p.block("  ", string(f.Content))
	}
	return p.lines, nil
}
