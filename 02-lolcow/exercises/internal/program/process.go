package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"example.com/workbook/shared/exercise/check"
)

// Process is a program that runs until it is stopped, such as an operator.
type Process struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
	err    error
}

// Start runs the program. It goes on after the behaviour, until Stop is called.
func (p *Program) Start(b *check.B, args ...string) *Process {
	b.Event("the program starts")
	cmd := exec.Command(p.binary(), args...) //nolint:noctx // it outlives the behaviour that starts it, and is ended by Stop
	one := &Process{cmd: cmd, ended: make(chan struct{})}
	one.cmd.Dir = p.dir
	one.cmd.Env = append(Environment(), "KUBECONFIG="+p.kubeconfig())
	one.cmd.Stdout, one.cmd.Stderr = &one.output, &one.output
	if err := one.cmd.Start(); err != nil {
		b.Fatalf("starting the program: %v", err)
	}
	go func() {
		defer close(one.ended)
		one.err = one.cmd.Wait()
	}()
	return one
}

// ExpectAlive ends the behaviour if the program has ended.
func (p *Process) ExpectAlive(b *check.B) {
	select {
	case <-p.ended:
		lines := strings.Split(strings.TrimSpace(p.output.String()), "\n")
		b.Fatalf("the program has ended: %v\n%s", p.err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	default:
	}
}

// Stop ends the program.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// Run runs a command in a folder, with variables in its environment, and returns what it prints. If it fails, the behaviour ends.
func Run(b *check.B, dir string, variables []string, words ...string) string {
	cmd := exec.CommandContext(b.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(Environment(), variables...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s", strings.TrimSpace(fmt.Sprintf("%s: %v\n%s%s", strings.Join(words, " "), err, output, errors.String())))
	}
	return strings.TrimSpace(string(output))
}

// Environment is without what a make or a git above this check passes on, and outside of any workspace.
func Environment() []string {
	others := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "GIT_") ||
			slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "GOFLAGS", "GOOS", "GOARCH"}, name)
	})
	return append(others, "GOWORK=off")
}
