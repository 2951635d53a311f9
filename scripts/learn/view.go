package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"example.com/workbook/shared/exercise"
)

const keyLine = "r run  t task  h hint  l list  n next  p previous  x reset  s solution  q quit"

// The lines above and below what scrolls: two of heading and a rule, a rule, the state and the keys.
const fixedRows = 6

// A line longer than this is hard to read.
const widest = 120

// A screen smaller than this shows as much as fits.
const leastWidth, leastHeight = 20, fixedRows + 1

func (s *screen) rows() int { return max(s.height, leastHeight) - fixedRows }

// View draws the screen.
func (s *screen) View() tea.View {
	view := tea.NewView(s.draw())
	view.AltScreen = true
	view.WindowTitle = "make learn: " + s.current().ID
	return view
}

func (s *screen) draw() string {
	if s.width == 0 { // the size is not known yet
		return ""
	}
	width, rows, e := max(s.width, leastWidth), s.rows(), s.current()
	rule := faint.Render(strings.Repeat("─", width))
	done := fmt.Sprintf("%d of %d done", s.doneCount(s.done), len(s.exercises))
	out := []string{
		ends(head.Render(e.ID+" "+e.Name+": "+e.Title), done, width),
		ends(s.short(e.WorkDir()), chapter(e), width),
		rule,
	}
	lines := s.lines()
	from := max(0, min(s.scroll, len(lines)-rows))
	to := min(from+rows, len(lines))
	out = append(out, lines[from:to]...)
	for range rows - (to - from) {
		out = append(out, "")
	}
	out = append(out, s.lowerRule(len(lines)-to, width), ansi.Truncate(s.state(), width, "…"), ansi.Truncate(s.keys(), width, "…"))
	return strings.Join(out, "\n")
}

// lowerRule says how many lines follow below.
func (s *screen) lowerRule(below, width int) string {
	if below <= 0 {
		return faint.Render(strings.Repeat("─", width))
	}
	text := fmt.Sprintf("── %s more, ↓ ", count(below, "line"))
	return faint.Render(text + strings.Repeat("─", max(0, width-ansi.StringWidth(text))))
}

func (s *screen) keys() string {
	if s.mode == showQuestion {
		return head.Render("y yes  n no")
	}
	if s.mode == showList {
		return "↑ ↓ move  enter open  esc back  q quit"
	}
	return keyLine
}

// state is the line about the check.
func (s *screen) state() string {
	if s.stopCheck == nil {
		return clean(joined(s.notice, s.checkedAt))
	}
	text := "checking"
	if waited := s.store.now().Sub(s.began).Seconds(); waited >= 1 {
		text = fmt.Sprintf("checking, %.0f s", waited)
	}
	if s.progress != "" {
		text += ": " + s.progress
	}
	return warn.Render(clean(joined(s.notice, text)))
}

func joined(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

// lines is all that scrolls, in the width of the screen.
func (s *screen) lines() []string {
	width := min(max(s.width, leastWidth), widest)
	switch s.mode {
	case showTask:
		return wrap(s.task, width)
	case showText:
		return wrap(s.text, width)
	case showQuestion:
		return wrap([]string{"", s.question}, width)
	case showList:
		return wrap(s.listLines(), width)
	}
	lines := append([]string{}, s.result...)
	lines = append(lines, "", faint.Render("The task:"), "")
	return wrap(append(lines, s.task...), width)
}

// listLines is the part of the list around the cursor.
func (s *screen) listLines() []string {
	var lines []string
	marked := 0
	for i, e := range s.exercises {
		if heading := s.heading(i); heading != "" {
			lines = append(lines, heading)
		}
		mark := "  "
		if i == s.cursor {
			mark, marked = "> ", len(lines)
		}
		lines = append(lines, mark+s.row(s.done, e))
	}
	rows := s.rows()
	from := max(0, min(marked-rows/2, len(lines)-rows))
	return lines[from:min(len(lines), from+rows)]
}

func chapter(e exercise.Exercise) string {
	if e.Part0 {
		return "Part 0"
	}
	if e.IsCapstone() {
		return "capstone"
	}
	return "chapter " + e.Chapter
}

// ends puts one text at the left end of a line and one at the right. The left one gives way.
func ends(left, right string, width int) string {
	room := width - ansi.StringWidth(right) - 1
	if room < 1 {
		return ansi.Truncate(left, width, "…")
	}
	left = ansi.Truncate(left, room, "…")
	return left + strings.Repeat(" ", room-ansi.StringWidth(left)+1) + right
}
