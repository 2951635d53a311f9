package broker

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

// program is a program that a broker runs itself: rc1, its start-up, and on rank 0 rc2, the initial program, whose end
// is the end of the instance.
type program struct {
	name string
	args []string
	// text is how the log names the command: without the shell that runs it.
	text    string
	began   time.Time
	process *os.Process
	// aborted is set if the broker has sent HUP to it: then it has failed, whatever its exit code.
	aborted bool
}

// newRC1 is the start-up that the attribute names. Without one the stand-in has nothing to do.
func newRC1(line string) *program {
	if line == "" {
		return nil
	}
	return &program{name: "rc1", args: shell(line), text: line}
}

// newRC2 parses the arguments after the options. A single word is a line for the shell, unless it is an executable
// file.
func newRC2(args []string) (*program, error) {
	p := &program{name: "rc2", args: args, text: strings.Join(args, " ")}
	switch {
	case len(args) == 0:
		return nil, words.Error("stdin is not a tty - can't run interactive shell")
	case len(args) == 1 && !isProgram(args[0]):
		p.args = shell(args[0])
	}
	return p, nil
}

// shell runs a line in the shell that a broker uses, which is not /bin/sh.
func shell(line string) []string { return []string{or(os.Getenv("SHELL"), "/bin/bash"), "-c", line} }

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !strings.ContainsAny(path, " \t\n")
}

// run starts a program. rc2 has the broker's own streams; those of rc1 are written to the log. When the program has
// ended, after is called as an event, with the exit code.
func (b *broker) run(p *program, after func(code int)) {
	p.began = b.now()
	cmd := &exec.Cmd{
		Args: p.args, Env: b.environment(),
		// Its child processes receive the same signals.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	out, errs := b.logged(p, info), b.logged(p, fail)
	if p.name == "rc1" {
		cmd.Stdout, cmd.Stderr = out, errs
	} else {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if err := startCommand(cmd); err != nil {
		go b.post(func() { after(b.report(p, notStarted(err), "error launching process: "+words.System(err).Error())) })
		return
	}
	p.process = cmd.Process
	go func() {
		_ = cmd.Wait()
		out.flush()
		errs.flush()
		code, killer := ended(cmd.ProcessState)
		how := "Exited"
		if killer != 0 {
			how = words.Signal(killer)
		}
		b.post(func() { after(b.report(p, code, how)) })
	}()
}

// logged is a stream whose lines are written to the log.
func (b *broker) logged(p *program, s severity) *lines {
	return &lines{send: func(data []byte) {
		for line := range bytes.Lines(data) {
			b.log.printf(s, "broker", "%s.0: %s", p.name, bytes.TrimSuffix(line, []byte("\n")))
		}
	}}
}

// report logs the end of a program and returns the exit code that counts.
func (b *broker) report(p *program, code int, how string) int {
	if p.aborted && code == 0 {
		code, how = 1, "aborted after exit with rc=0"
	}
	severity := info
	if code != 0 {
		severity = fail
	}
	b.log.printf(severity, "broker", "%s.0: %s %s (rc=%d) %.1fs", p.name, p.text, how, code, b.now().Sub(p.began).Seconds())
	return code
}

// abort sends HUP to the program, and to all of its child processes that are still in its group.
func (p *program) abort() {
	p.aborted = true
	if p.process != nil {
		_ = syscall.Kill(-p.process.Pid, syscall.SIGHUP) // it may just have ended
	}
}
