package exercise

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// What a Death can be.
const (
	DeathPanic  = "panic"
	DeathExit   = "exit"
	DeathLoop   = "loop"
	DeathKilled = "killed"
)

var (
	panicLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
	frame     = regexp.MustCompile(`(?m)^\t(.+\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)
	goroutine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[([^\],]+)`)
	raceText  = regexp.MustCompile(`(?s)WARNING: DATA RACE.*?={18}`)
)

// death says how a run ended that reported no end.
func death(d Death, t target, output string, exit error) Death {
	if d.stack != "" {
		d.Kind, d.Message = DeathLoop, "the code did not come to an end within the time limit"
		d.Line = busyLine(d.stack, t)
		return d
	}
	if match := panicLine.FindStringSubmatchIndex(output); match != nil {
		d.Kind, d.Message = DeathPanic, output[match[2]:match[3]]
		d.Line = firstLine(output[match[0]:], t)
		return d
	}
	d.Kind, d.Message = DeathExit, "the code ended the process"
	if err, ok := errors.AsType[*exec.ExitError](exit); ok {
		d.Message += fmt.Sprintf(", with exit status %d", err.ExitCode())
		if status, ok := err.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			d.Kind, d.Message = DeathKilled, "the process got the signal "+status.Signal().String()
			return d
		}
	}
	d.Line = exitLine(t)
	return d
}

// firstLine is the first line of the reader's in a stack, as in exercise.go:42.
func firstLine(stack string, t target) string {
	dir := t.dir + string(filepath.Separator)
	for _, match := range frame.FindAllStringSubmatch(stack, -1) {
		if rest, found := strings.CutPrefix(match[1], dir); found {
			return rest + ":" + match[2]
		}
	}
	return ""
}

// busyLine is the reader's line in the stacks of all goroutines: one that runs comes before one that waits.
func busyLine(stacks string, t target) string {
	var waiting string
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		line := firstLine(stack, t)
		if line == "" {
			continue
		}
		state := goroutine.FindStringSubmatch(stack)
		if state != nil && slices.Contains([]string{"running", "runnable"}, state[1]) {
			return line
		}
		if waiting == "" {
			waiting = line
			if state != nil {
				waiting += " (" + state[1] + ")"
			}
		}
	}
	return waiting
}

func race(output string) string { return raceText.FindString(output) }

// exits are calls that end a process.
var exits = map[string][]string{
	"os":      {"Exit"},
	"syscall": {"Exit", "Kill"},
	"log":     {"Fatal", "Fatalf", "Fatalln"},
	"klog":    {"Fatal", "Fatalf", "Fatalln", "Exit", "Exitf"},
}

// exitLine is the first line of the reader's that can end the process. A process that has ended leaves no stack.
func exitLine(t target) string {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.go"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			continue
		}
		var found string
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || found != "" {
				return found == ""
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(exits[pkg.Name], selector.Sel.Name) {
				found = fmt.Sprintf("%s:%d", filepath.Base(file), set.Position(call.Pos()).Line)
			}
			return found == ""
		})
		if found != "" {
			return found
		}
	}
	return ""
}
