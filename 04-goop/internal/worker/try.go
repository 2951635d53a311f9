package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Exit codes of a try whose program was not even started, as shells have them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// defaultPath is where programs are looked for in an image that does not say.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// end is how a try ended.
type end struct {
	code   int32
	output string
	// hopeless tries are not repeated: there is no such program, and there will be none.
	hopeless bool
}

// try runs the command once, and ends what it leaves of its process group. The error is *Stopped if a signal came
// first; any other means that it could not be tried for want of pipes.
func (w *Worker) try() (end, error) {
	output := &tail{}
	stdout, err := w.stream(w.Stdout, output)
	if err != nil {
		return end{}, err
	}
	defer stdout.close()
	stderr, err := w.stream(w.Stderr, output)
	if err != nil {
		return end{}, err
	}
	defer stderr.close()

	w.step("start")
	pid, err := start(w.Command, stdout.write, stderr.write)
	if err != nil {
		w.say("%v", err)
		return end{code: codeOf(err), output: fmt.Sprintf("goop-worker: %v\n", err), hopeless: isHopeless(err)}, nil
	}
	w.step("started")
	status, stopped := w.await(pid)
	// What the command left in the background is not its work: it would be in the way of the next try, and the
	// container's end would take it anyway.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	stdout.finish()
	stderr.finish()
	if stopped != nil {
		return end{}, stopped
	}
	w.step("ended")
	code := int32(status.ExitStatus())
	if status.Signaled() {
		code = codeOfSignal(status.Signal())
	}
	return end{code: code, output: output.String()}, nil
}

// start starts a program as the leader of a process group of its own.
func start(argv []string, stdout, stderr *os.File) (pid int, err error) {
	if _, set := os.LookupEnv("PATH"); !set {
		if err := os.Setenv("PATH", defaultPath); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is ended by signals, and as a group
	if errors.Is(cmd.Err, exec.ErrDot) {
		cmd.Err = nil // a PATH with the working directory in it is the image's own choice
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	// It is waited for by its number.
	return pid, cmd.Process.Release()
}

func codeOf(err error) int32 {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeNotExecutable
}

func isHopeless(err error) bool {
	return codeOf(err) == codeNotFound || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC)
}

// await waits for the end of the command, and passes signals on to its group. The first one of them is the error.
func (w *Worker) await(pid int) (syscall.WaitStatus, error) {
	ended := make(chan syscall.WaitStatus, 1)
	go func() { ended <- reap(pid) }()
	var stopped error
	var kill <-chan time.Time
	for {
		select {
		case status := <-ended:
			return status, stopped
		case received := <-w.Signals:
			number := asSyscall(received)
			if stopped == nil {
				stopped = &Stopped{number}
				timer := time.NewTimer(w.Grace)
				defer timer.Stop()
				kill = timer.C
			}
			_ = syscall.Kill(-pid, number)
		case <-kill:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}

// reap waits for a child. Process 1 is given every process that lost its parent: it has to wait for those too, or
// they fill the container's table of processes for as long as the command runs.
func reap(child int) syscall.WaitStatus {
	which := child
	if os.Getpid() == 1 {
		which = -1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(which, &status, 0, nil)
		if pid == child || (err != nil && !errors.Is(err, syscall.EINTR)) {
			return status
		}
	}
}
