package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"example.com/workbook/shared/exercise"
)

// mode is what the middle of the screen shows.
type mode int

const (
	showTask mode = iota
	showResult
	showText // a hint, a solution, the keys
	showList
	showQuestion
)

// screen is what the reader sees while the runner watches: one exercise, and what its last check found.
type screen struct {
	*runner
	ctx  context.Context
	send func(tea.Msg)

	width, height int
	mode          mode
	at            int
	done          *progress
	task          []string
	result        []string
	text          []string
	scroll        int
	cursor        int
	question      string
	yes           func() tea.Cmd
	notice        string // about the last key, until the next
	checkedAt     string

	saved     <-chan struct{}
	stopWatch context.CancelFunc

	// A check is under way if stopCheck is set. again is set if another one is to follow it: two never run at once.
	stopCheck context.CancelFunc
	again     bool
	began     time.Time
	progress  string
}

type (
	savedMsg   struct{ from <-chan struct{} }
	noteMsg    string
	tickMsg    struct{}
	checkedMsg struct {
		id string
		verdict
		err error
	}
)

// watch shows the screen until the reader quits. It opens the exercise with that ID, or the next one.
func (c *commands) watch(ctx context.Context, id string) (int, error) {
	release, err := c.store.open()
	if err != nil {
		return exitCannot, err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &screen{runner: c.runner, ctx: ctx}
	p, err := c.store.load()
	if err != nil {
		return exitCannot, err
	}
	s.done = p
	s.at, _ = c.next(p)
	if id != "" {
		if s.at, err = c.index(id); err != nil {
			return exitCannot, err
		}
	}
	program := tea.NewProgram(s, tea.WithContext(ctx), tea.WithoutSignalHandler())
	s.send = program.Send
	if _, err := program.Run(); err != nil {
		return exitCannot, fmt.Errorf("showing the screen: %w", err)
	}
	if now, err := c.store.load(); err == nil { // a command beside the screen may have changed it
		s.done = now
	}
	at, _ := c.next(s.done)
	e := c.exercises[at]
	c.print(fmt.Sprintf("%d of %d done. make learn goes on with %s %s.", c.doneCount(s.done), len(c.exercises), e.ID, e.Name))
	return exitDone, nil
}

func (s *screen) current() exercise.Exercise { return s.exercises[s.at] }

// Init opens the exercise that is next.
func (s *screen) Init() tea.Cmd { return s.open(s.at) }

// Update handles what happens: keys, saved files, checks that are over.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
		s.scroll = 0
	case tea.KeyPressMsg:
		return s, s.key(msg.String())
	case savedMsg:
		if msg.from != s.saved { // of an exercise that was closed
			return s, nil
		}
		return s, tea.Batch(s.nextSave(), s.check())
	case checkedMsg:
		return s, s.checked(msg)
	case noteMsg:
		s.progress = string(msg)
	case tickMsg:
		if s.stopCheck != nil {
			return s, tick()
		}
	}
	return s, nil
}

// open shows an exercise, watches its folder and checks what is there.
func (s *screen) open(at int) tea.Cmd {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	s.at, s.mode, s.scroll, s.result, s.notice, s.checkedAt = at, showTask, 0, nil, "", ""
	e := s.current()
	s.task = s.taskOf(e)
	begun, err := s.begin(e)
	if begun {
		s.notice = "the start is copied: edit it, and save"
	}
	s.remember(func(p *progress) { p.Current = e.ID })
	var ctx context.Context
	ctx, s.stopWatch = context.WithCancel(s.ctx)
	s.saved = watch(ctx, e.WorkDir())
	if err != nil {
		s.result, s.mode = s.failure(e, err), showResult
		return s.nextSave()
	}
	return tea.Batch(s.nextSave(), s.check())
}

// taskOf is the README without its title, which stands above.
func (s *screen) taskOf(e exercise.Exercise) []string {
	text, err := e.Task()
	if err != nil {
		return []string{err.Error()}
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "# ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return s.markdown(strings.TrimSpace(text), e.Dir)
}

// remember changes the progress. If that fails the session goes on.
func (s *screen) remember(change func(*progress)) {
	if err := s.store.change(s.ctx, change); err != nil {
		s.notice = err.Error()
	}
	if p, err := s.store.load(); err == nil {
		s.done = p
	}
}

// nextSave waits for the next change of the reader's files.
func (s *screen) nextSave() tea.Cmd {
	saved, ctx := s.saved, s.ctx
	return func() tea.Msg {
		select {
		case <-saved:
			return savedMsg{saved}
		case <-ctx.Done():
			return nil
		}
	}
}

// check begins a check. One that is under way is stopped first: its result would be of older files.
func (s *screen) check() tea.Cmd {
	if s.mode == showText {
		s.mode, s.scroll = showResult, 0
	}
	if s.stopCheck != nil {
		s.again = true
		s.stopCheck()
		return nil
	}
	ctx, stop := context.WithCancel(s.ctx)
	s.stopCheck, s.again, s.began, s.progress = stop, false, s.store.now(), ""
	e := s.current()
	run := func() tea.Msg {
		found, err := s.runner.check(ctx, e, func(text string) { s.send(noteMsg(text)) })
		return checkedMsg{e.ID, found, err}
	}
	return tea.Batch(run, tick())
}

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// checked shows the result, unless it is not of the files that are there now.
func (s *screen) checked(msg checkedMsg) tea.Cmd {
	s.stopCheck()
	s.stopCheck = nil
	e := s.current()
	if s.again || msg.Moved || msg.id != e.ID {
		return s.check()
	}
	if errors.Is(msg.err, context.Canceled) {
		return nil
	}
	if p, err := s.store.load(); err == nil {
		s.done = p
	}
	s.scroll = 0
	if s.mode == showTask {
		s.mode = showResult
	}
	s.checkedAt = "checked at " + s.store.now().Format(time.TimeOnly)
	if msg.Unsaved != nil {
		s.checkedAt += "; " + msg.Unsaved.Error()
	}
	switch {
	case errors.Is(msg.err, errGone):
		s.result = append(s.failure(e, msg.err), "", "Put the file back, or press x to lay the start down again.")
	case msg.err != nil:
		s.result = s.failure(e, msg.err)
	default:
		s.result = report(e, msg.Result)
		if msg.OK() {
			s.result = append(s.result, "", s.whatNext())
		}
	}
	return nil
}

func (s *screen) whatNext() string {
	at, all := s.undone(s.done, s.at+1)
	if all {
		return "All exercises are done. s shows how others solved this one."
	}
	return fmt.Sprintf("n goes on to %s. s shows how others solved this one.", s.exercises[at].ID)
}
