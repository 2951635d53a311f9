package main

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
)

const keysHelp = `r          check now; each save does it too
t          the task
h          the hints so far and one more
l          the list of all exercises; enter opens the one that is marked
n, p       the next exercise that is not done; the one before this one
x          lay the start down again; your files are copied first
s          the solutions; it asks first as long as the exercise is not done
q, Ctrl-C  quit: the progress is kept
↑ ↓ PgUp PgDn Home End scroll, esc goes back to the result

make learn help lists the commands that need no screen.`

func (s *screen) key(key string) tea.Cmd {
	s.notice = ""
	switch key {
	case "ctrl+c":
		return s.quit()
	case "ctrl+z":
		return tea.Suspend
	}
	switch s.mode {
	case showQuestion:
		return s.keyOfQuestion(key)
	case showList:
		if cmd, taken := s.keyOfList(key); taken {
			return cmd
		}
	default:
		if s.keyOfScroll(key) {
			return nil
		}
	}
	return s.keyOfExercise(key)
}

func (s *screen) quit() tea.Cmd {
	if s.stopCheck != nil {
		s.again = false
		s.stopCheck()
	}
	return tea.Quit
}

func (s *screen) keyOfExercise(key string) tea.Cmd {
	switch key {
	case "q":
		return s.quit()
	case "r", "enter":
		s.back()
		return s.check()
	case "t":
		s.mode, s.scroll = showTask, 0
	case "h":
		s.hint()
	case "l":
		s.mode, s.cursor = showList, s.at
	case "n":
		return s.goOn()
	case "p":
		if s.at > 0 {
			return s.open(s.at - 1)
		}
		s.notice = "this is the first exercise"
	case "x":
		s.askReset()
	case "s":
		s.askSolution()
	case "?":
		var p page
		p.block("", keysHelp)
		s.show(p.lines)
	case "esc":
		s.back()
	}
	return nil
}

// back shows the result, or the task as long as there is none.
func (s *screen) back() {
	s.mode, s.scroll = showResult, 0
	if s.result == nil {
		s.mode = showTask
	}
}

func (s *screen) show(lines []string) { s.text, s.mode, s.scroll = lines, showText, 0 }

func (s *screen) hint() {
	lines, err := s.moreHints(s.ctx, s.current())
	if err != nil {
		s.notice = err.Error()
		return
	}
	s.show(lines)
}

// goOn opens the next exercise that is not done. From the last it begins at the first again.
func (s *screen) goOn() tea.Cmd {
	at, all := s.undone(s.done, s.at+1)
	if all || at == s.at {
		s.notice = "there is no other exercise that is not done"
		return nil
	}
	return s.open(at)
}

func (s *screen) keyOfScroll(key string) bool {
	rows := s.rows()
	switch key {
	case "up", "k":
		s.scroll--
	case "down", "j":
		s.scroll++
	case "pgup", "b":
		s.scroll -= rows
	case "pgdown", "space", "f":
		s.scroll += rows
	case "home", "g":
		s.scroll = 0
	case "end", "G":
		s.scroll = len(s.lines())
	default:
		return false
	}
	s.scroll = max(0, min(s.scroll, len(s.lines())-rows))
	return true
}

func (s *screen) keyOfList(key string) (cmd tea.Cmd, taken bool) {
	switch key {
	case "up", "k":
		s.cursor--
	case "down", "j":
		s.cursor++
	case "pgup":
		s.cursor -= s.rows()
	case "pgdown":
		s.cursor += s.rows()
	case "home":
		s.cursor = 0
	case "end":
		s.cursor = len(s.exercises) - 1
	case "enter":
		return s.open(s.cursor), true
	case "l":
		s.back()
	default:
		return nil, false
	}
	s.cursor = max(0, min(s.cursor, len(s.exercises)-1))
	return nil, true
}

// ask shows a question; y does it, and any other key does nothing.
func (s *screen) ask(question string, yes func() tea.Cmd) {
	s.mode, s.question, s.yes = showQuestion, question+"  y / n", yes
}

func (s *screen) keyOfQuestion(key string) tea.Cmd {
	s.back()
	if key == "y" || key == "Y" {
		return s.yes()
	}
	return nil
}

func (s *screen) askReset() {
	e := s.current()
	s.ask(fmt.Sprintf("Lay the start of %s down again? Your files are copied to .learn/kept first.", e.ID), func() tea.Cmd {
		kept, err := s.reset(e)
		switch {
		case err != nil:
			s.result, s.mode = s.failure(e, err), showResult
			return nil
		case kept != "":
			s.notice = "your files are kept in " + s.short(kept)
		}
		return nil // the folder is watched, so a check follows
	})
}

// askSolution asks only those who have not solved the exercise.
func (s *screen) askSolution() {
	e := s.current()
	if s.done.done(e.ID) {
		s.showSolution()
		return
	}
	s.ask(fmt.Sprintf("%s is not done yet. Show the solution? A hint (h) may be enough.", e.ID), func() tea.Cmd {
		s.showSolution()
		return nil
	})
}

func (s *screen) showSolution() {
	lines, err := s.solutionLines(s.current(), "")
	if err != nil {
		s.notice = err.Error()
		return
	}
	s.show(lines)
}
