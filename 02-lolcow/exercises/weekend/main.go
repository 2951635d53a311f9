// Command weekend checks the project of a reader of Lolcow in a weekend, or puts the solution of a step into it. Readers call
// it by scripts/my-lolcow.sh.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/02-lolcow/exercises/part0"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise"
)

// Exit codes: the step is done, it is not yet, it cannot be said.
const (
	done   = 0
	notYet = 1
	cannot = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "weekend:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	if len(args) != 3 {
		return cannot, errors.New("usage: weekend check|adopt STEP DIR")
	}
	command, step, dir := args[0], args[1], args[2]
	switch command {
	case "check":
		return checkStep(ctx, step, dir, out)
	case "adopt":
		kept, err := part0.Adopt(ctx, dir, step, time.Now())
		if err != nil {
			return cannot, err
		}
		fmt.Fprintf(out, "the solution of %s is in %s\n", step, dir)
		if kept != "" {
			fmt.Fprintf(out, "your files are in %s\n", kept)
		}
		return done, nil
	}
	return cannot, fmt.Errorf("there is no command %s", command)
}

func checkStep(ctx context.Context, step, dir string, out io.Writer) (int, error) {
	root, err := config.Repo()
	if err != nil {
		return cannot, err
	}
	one, err := exercise.Find(root, step)
	if err != nil {
		return cannot, err
	}
	if !one.Part0 {
		return cannot, fmt.Errorf("%s is no step of Lolcow in a weekend: make learn %s", step, step)
	}
	note := func(text string) { fmt.Fprintln(os.Stderr, "==>", text) }
	result, err := exercise.Run(ctx, one, dir, exercise.Options{Note: note})
	if err != nil {
		return cannot, err
	}
	show(out, result)
	if result.OK() {
		fmt.Fprintf(out, "\n%s is done: %s\n", step, one.Title)
		return done, nil
	}
	return notYet, nil
}

// show prints what is missing last, where the reader sees it.
func show(out io.Writer, result exercise.Result) {
	for _, one := range result.Behaviours {
		if one.OK {
			fmt.Fprintf(out, "✓ %s\n", one.Name)
		}
	}
	first := true
	for _, one := range result.Behaviours {
		if one.OK {
			continue
		}
		fmt.Fprintf(out, "\n✗ %s\n%s", one.Name, indent(one.Seen))
		// The timeline of the first is enough: the others often follow from it.
		if first && len(one.Timeline) > 0 {
			fmt.Fprintf(out, "  what happened:\n%s", indent(strings.Join(last(one.Timeline), "\n")))
		}
		first = false
	}
	if result.CompileError != "" {
		fmt.Fprintf(out, "\n✗ the check compiles\n%s", indent(result.CompileError))
	}
	if died := result.Died; died != nil {
		fmt.Fprintf(out, "\n✗ %s\n%s", died.Behaviour, indent(strings.TrimSpace(died.Kind+": "+died.Message+" "+died.Line)))
		if died.Line == "" {
			fmt.Fprint(out, indent(result.Output))
		}
	}
	if result.Diagnosis != "" {
		fmt.Fprintf(out, "\nprobably: %s\n", result.Diagnosis)
	}
}

// last are the last events of a timeline.
func last(timeline []string) []string {
	return timeline[max(0, len(timeline)-20):]
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "    %s\n", strings.TrimRight(line, "\n"))
	}
	return b.String()
}
