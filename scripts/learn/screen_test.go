package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"example.com/workbook/shared/exercise"
)

// desk drives a screen without a terminal: it hands it messages one by one, as the library does.
type desk struct {
	*screen
	t        *testing.T
	messages chan tea.Msg
	quits    bool
}

func newDesk(t *testing.T, r *runner) *desk {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p, err := r.store.load()
	must(t, err)
	d := &desk{t: t, messages: make(chan tea.Msg, 1000)}
	d.screen = &screen{runner: r, ctx: ctx, done: p, send: func(msg tea.Msg) { d.messages <- msg }}
	d.at, _ = r.next(p)
	d.give(tea.WindowSizeMsg{Width: 80, Height: 24})
	d.run(d.Init())
	return d
}

func (d *desk) run(cmd tea.Cmd) {
	if cmd != nil {
		go func() { d.messages <- cmd() }()
	}
}

func (d *desk) give(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
	case tea.QuitMsg:
		d.quits = true
	case nil:
	default:
		_, cmd := d.Update(msg)
		d.run(cmd)
	}
	d.fits()
}

// fits asserts that the screen is exactly as large as the terminal.
func (d *desk) fits() {
	d.t.Helper()
	lines := strings.Split(d.draw(), "\n")
	if len(lines) != max(d.height, leastHeight) {
		d.t.Fatalf("the screen has %d lines in a terminal of %d:\n%s", len(lines), d.height, d.draw())
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > max(d.width, leastWidth) {
			d.t.Fatalf("a line is wider than %d: %q", d.width, line)
		}
	}
}

func (d *desk) press(keys string) {
	for key := range strings.FieldsSeq(keys) {
		switch key {
		case "enter":
			d.give(tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			d.give(tea.KeyPressMsg{Code: tea.KeyEscape})
		case "down":
			d.give(tea.KeyPressMsg{Code: tea.KeyDown})
		case "end":
			d.give(tea.KeyPressMsg{Code: tea.KeyEnd})
		case "ctrl+c":
			d.give(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
		default:
			d.give(tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
		}
	}
}

// next handles one message.
func (d *desk) next(waitsFor string) {
	d.t.Helper()
	select {
	case msg := <-d.messages:
		d.give(msg)
	case <-time.After(patience):
		d.t.Fatalf("expected %s; the screen:\n%s", waitsFor, d.draw())
	}
}

// until handles messages until the screen shows a text.
func (d *desk) until(want string) {
	d.t.Helper()
	for limit := time.Now().Add(patience); !strings.Contains(ansi.Strip(d.draw()), want); {
		if time.Now().After(limit) {
			d.t.Fatalf("expected %q on the screen:\n%s", want, d.draw())
		}
		d.next(want)
	}
}

// idle handles messages until no check is under way.
func (d *desk) idle() {
	d.t.Helper()
	for d.stopCheck != nil {
		d.next("the end of the check")
	}
}

func (d *desk) untilEnd() {
	d.t.Helper()
	for !d.quits {
		d.next("the end of the program")
	}
}

func TestScreenChecksOnEachSave(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	d := newDesk(t, r)
	d.until("✗ a lost event is repaired")
	d.until("0 of 3 done")
	save(t, r.exercises[0], "broken")
	d.until("does not compile")
	save(t, r.exercises[0], solutionText)
	d.until("✓ 04a is done")
	d.until("1 of 3 done")
	d.until("n goes on to 04b")
	must(t, os.RemoveAll(r.exercises[0].WorkDir()))
	d.until("press x to lay the start down again")
	if r.begun(&progress{}, r.exercises[0]) {
		t.Error("the start is back without being asked for")
	}
	d.press("x y")
	d.until("✗ a lost event is repaired")
	d.until("1 of 3 done")
	d.press("n")
	d.until("04b second")
	d.until("✗ a lost event is repaired")
	save(t, r.exercises[0], "broken") // the one that was left
	d.idle()
	save(t, r.exercises[1], solutionText)
	d.until("✓ 04b is done")
}

func TestScreenKeys(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	d := newDesk(t, r)
	d.until("✗ a lost event is repaired")
	for _, step := range []struct{ keys, want string }{
		{"t", "Write it."},
		{"h", "vague"},
		{"h", "plain"},
		{"esc", "✗ a lost event"},
		{"l", "> ·"},
		{"end enter", "05a third"},
		{"p", "04b second"},
		{"p p", "this is the first exercise"},
		{"s", "Show the solution?"},
		{"n", "The task:"},
		{"s y", "It is level-triggered."},
		{"esc s", "Show the solution?"},
		{"n", "The task:"},
		{"?", "Home End scroll"},
		{"x", "Lay the start of 04a down again?"},
		{"esc", "r run"},
	} {
		d.idle()
		d.press(step.keys)
		d.until(step.want)
	}
	d.idle()
	d.press("q")
	d.untilEnd()
}

func TestScreenKeepsWhatResetReplaces(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	save(t, r.exercises[0], solutionText)
	d := newDesk(t, r)
	d.until("✓ 04a is done")
	d.press("x n")
	expectFiles(t, r.exercises[0].WorkDir(), files{"exercise.go": []byte(solutionText)})
	d.press("x y")
	d.until("your files are kept in .learn/kept/04a-first-")
	expectFiles(t, r.exercises[0].WorkDir(), files{"exercise.go": []byte(startText)})
	d.until("✗ a lost event is repaired")
}

func TestScreenShowsTheResultOfTheNewestFiles(t *testing.T) {
	t.Parallel()
	r, c := newTestRunner(t)
	began := make(chan string, 10)
	c.during = func(ctx context.Context, e exercise.Exercise) {
		text, _ := readFolder(e.WorkDir())
		began <- string(text["exercise.go"])
		if strings.Contains(string(text["exercise.go"]), "first") && strings.Contains(string(text["exercise.go"]), "TODO") {
			<-ctx.Done() // as the reader's code that waits
		}
	}
	d := newDesk(t, r)
	for len(began) == 0 {
		d.next("the check of the start")
	}
	save(t, r.exercises[0], solutionText)
	d.until("✓ 04a is done")
	for len(d.messages) > 0 {
		d.give(<-d.messages)
	}
	if text := d.draw(); strings.Contains(text, markMissed) {
		t.Errorf("the result of the older files is shown:\n%s", text)
	}
}

func TestScreenGoesOnWithoutAnAPIServer(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	save(t, r.exercises[0], "no server")
	d := newDesk(t, r)
	d.until("✗ 04a was not checked")
	d.until("starting an API server: it ended at once")
	save(t, r.exercises[0], solutionText)
	d.until("✓ 04a is done")
}

func TestScreenQuitsAtEveryMoment(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"ctrl+c", "h ctrl+c", "l ctrl+c", "x ctrl+c", "s ctrl+c", "r q", "l q"} {
		r, c := newTestRunner(t)
		save(t, r.exercises[0], "slow")
		d := newDesk(t, r)
		d.until("starting an API server")
		d.press(keys)
		d.untilEnd()
		must(t, r.close()) // waits for the check
		if !c.closed {
			t.Errorf("%s: the API servers go on", keys)
		}
	}
}

func TestScreenInEverySize(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	d := newDesk(t, r)
	d.until("✗ a lost event is repaired")
	for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 10}, {10, 3}, {1, 1}, {80, 24}} {
		d.give(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, keys := range []string{"t", "h", "l", "esc", "s", "n", "?", "end", "esc"} {
			d.press(keys)
		}
	}
	d.until("✗ a lost event is repaired")
}

func TestPanicIsReportedWithTheReadersLine(t *testing.T) {
	t.Parallel()
	text := ansi.Strip(strings.Join(report(exercise.Exercise{ID: "04a"}, exercise.Result{
		Behaviours: []exercise.Behaviour{{Name: "b", OK: true}},
		Died:       &exercise.Death{Kind: "panic", Behaviour: "c", Message: "nil map", Line: "exercise.go:19"},
		Output:     "mine\npanic: nil map\n\ngoroutine 26 [running]:\n",
	}), "\n"))
	for _, want := range []string{"✗ your code panics, at exercise.go:19", "while this was checked: c", "nil map", "mine", "✓ b"} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "goroutine") {
		t.Errorf("the stack is shown:\n%s", text)
	}
}

func TestReaderOutputDoesNotMoveTheCursor(t *testing.T) {
	t.Parallel()
	text := strings.Join(report(exercise.Exercise{ID: "04a"}, exercise.Result{
		Behaviours: []exercise.Behaviour{{Name: "b", Seen: "a\x1b[2Jb\rc\x07"}}, Output: "\x1b]0;title\x07x\ty\n",
	}), "\n")
	if plain := ansi.Strip(text); !strings.Contains(plain, "abc") || !strings.Contains(plain, "x    y") || strings.Contains(text, "[2J") {
		t.Errorf("the report is %q", text)
	}
}
