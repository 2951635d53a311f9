package check

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A panic is reported with what was begun last.
func TestTheEndOfTheContextIsNotTheBehaviour(t *testing.T) {
	t.Parallel()
	begun, during := "", ""
	check := &T{ctx: t.Context(), report: func(line Line) {
		if line.Begin != "" {
			begun = line.Begin
		}
	}}
	check.Behaviour("it is there", func(b *B) {
		during = begun
		b.Cleanup(func() { during += "; " + begun })
	})
	if want := "it is there; the end of the context, after: it is there"; during != want {
		t.Errorf("%q was begun, expected %q", during, want)
	}
}

// holds is an error that holds the end of a process up: the runtime asks for its text after all deferred calls.
type holds struct{ reported chan struct{} }

func (h holds) Error() string {
	select {
	case <-h.reported:
		select {} // The check has gone on: let it come to its end.
	case <-time.After(time.Second):
	}
	return "it panics"
}

func TestAPanicIsNotThere(t *testing.T) {
	const variable = "CHECK_TEST_CHILD"
	bodies := map[string]func(b *B, h holds){
		"in the body": func(_ *B, h holds) { panic(h) },
		"in Go":       func(b *B, h holds) { <-b.Go(func() { panic(h) }) },
	}
	if body, child := bodies[os.Getenv(variable)]; child {
		h := holds{reported: make(chan struct{})}
		check := &T{ctx: t.Context(), report: func(line Line) {
			if line.Behaviour != "" {
				close(h.reported)
			}
		}}
		check.Behaviour("it is there", func(b *B) { body(b, h) })
		return
	}
	for name := range bodies {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPanicIsNotThere$", "-test.timeout=30s")
		cmd.Env = append(os.Environ(), variable+"="+name)
		out, err := cmd.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); !failed {
			t.Errorf("a panic %s came to %v, expected a process that failed:\n%s", name, err, out)
		}
	}
}
