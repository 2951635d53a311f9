package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/workbook/shared/exercise"
)

// TestMain makes this binary the program, with simulated checks, where a test starts it so.
func TestMain(m *testing.M) {
	if os.Getenv("LEARN_SIMULATED") != "" {
		os.Exit(process(os.Args[1:], func(root string) checker { return &simulated{root: root} }))
	}
	// Where this was started with nohup, programs that the tests start would ignore SIGHUP too. A signal that is caught here is not
	// ignored there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

// simulated is a checker that reads the verdict in the reader's file.
type simulated struct {
	root string
	// during is called while a check is under way.
	during func(ctx context.Context, e exercise.Exercise)
	closed bool
}

func (s *simulated) Check(ctx context.Context, e exercise.Exercise, dir string, note func(string)) (exercise.Result, error) {
	content, err := readFolder(dir)
	if err != nil {
		return exercise.Result{}, err
	}
	if s.during != nil {
		s.during(ctx, e)
	}
	text := string(content["exercise.go"])
	red := exercise.Behaviour{Name: "a lost event is repaired", Seen: "the object was not created", Timeline: []string{"event ADDED a", "GET a"}}
	green := exercise.Behaviour{Name: "an object is created", OK: true}
	switch {
	case strings.Contains(text, "broken"):
		return exercise.Result{CompileError: "exercise.go:3:1: undefined: broken"}, nil
	case strings.Contains(text, "no server"):
		return exercise.Result{}, fmt.Errorf("starting an API server: it ended at once")
	case strings.Contains(text, "slow"):
		note("starting an API server")
		// Something that has to end with the check, as an API server and the reader's code.
		child := exec.CommandContext(ctx, "sleep", "600")
		if err := child.Start(); err != nil {
			return exercise.Result{}, err
		}
		_ = os.WriteFile(filepath.Join(s.root, "child.pid"), fmt.Append(nil, child.Process.Pid), 0o644)
		return exercise.Result{}, child.Wait()
	case strings.Contains(text, "TODO"):
		return exercise.Result{
			Behaviours: []exercise.Behaviour{green, red}, Diagnosis: "The event is the only trigger.",
			Output: "reconciling a\n", Took: 800 * time.Millisecond,
		}, nil
	}
	red.OK, red.Seen, red.Timeline = true, "", nil
	return exercise.Result{Behaviours: []exercise.Behaviour{green, red}, Took: time.Second}, nil
}

func (s *simulated) Close() error {
	s.closed = true
	return os.WriteFile(filepath.Join(s.root, "closed"), nil, 0o644)
}

const (
	startText    = "package first\n\n// TODO\n"
	solutionText = "package first\n\nfunc Solved() {}\n"
)

// workbook is a repository with three exercises.
func workbook(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeWorkbook(t, root)
	return root
}

func writeWorkbook(t *testing.T, root string) {
	t.Helper()
	all := files{"shared/config/harness.env": nil}
	for _, name := range []string{"04a-first", "04b-second", "05a-third"} {
		dir := "01-informers/exercises/" + name + "/"
		all[dir+"exercise.json"] = fmt.Appendf(nil, `{"title": "the task of %s"}`, name)
		all[dir+"README.md"] = []byte("# " + name + "\n\nWrite it.\n\n" +
			"<details><summary>Hint 1</summary>\n\nvague\n\n</details>\n<details><summary>Hint 2</summary>\n\nplain\n\n</details>\n")
		all[dir+"exercise.go"] = []byte("//go:build start\n\n" + startText)
		all[dir+"solutions/short/exercise.go"] = []byte(solutionText)
		all[dir+"solutions/short/why.txt"] = []byte("It is level-triggered.\n")
		all[dir+"solutions/wide/exercise.go"] = []byte(solutionText + "\n// wide\n")
		all[dir+"solutions/wide/why.txt"] = []byte("It has two files.\n")
		all[dir+"solutions/wide/more.go"] = []byte("package first\n")
	}
	if err := all.write(root); err != nil {
		t.Fatal(err)
	}
}

func newTestRunner(t *testing.T) (*runner, *simulated) {
	t.Helper()
	return runnerIn(t, workbook(t))
}

func runnerIn(t *testing.T, root string) (*runner, *simulated) {
	t.Helper()
	c := &simulated{root: root}
	r, err := newRunner(root, c)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func save(t *testing.T, e exercise.Exercise, text string) {
	t.Helper()
	if err := (files{"exercise.go": []byte(text)}).write(e.WorkDir()); err != nil {
		t.Fatal(err)
	}
}
