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

// The exit codes of shells for a program that could not be started.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// defaultPath is the PATH for images that do not set one.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// end is how a try ended.
type end struct {
	code   int32
	output string
	// hopeless means that a retry would fail in the same way, because the program does not exist or cannot be executed.
	hopeless bool
}

// try runs the command once, and then kills the rest of its process group. The error is *Stopped if a signal came first.
// Any other error means that no pipes could be created.
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
	w.dropOthers()
	pid, err := start(w.Command, stdout.write, stderr.write)
	if err != nil {
		w.say("%v", err)
		return end{code: codeOf(err), output: fmt.Sprintf("goop-worker: %v\n", err), hopeless: isHopeless(err)}, nil
	}
	w.step("started")
	status, stopped := w.await(pid)
	// Background processes of the command would disturb the next try. They would be killed at the end of the container
	// anyway.
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

// dropOthers drops the signals that arrived while no command was running.
func (w *Worker) dropOthers() {
	for {
		select {
		case <-w.Others:
		default:
			return
		}
	}
}

// start starts a program as the leader of its own process group.
func start(argv []string, stdout, stderr *os.File) (pid int, err error) {
	if _, set := os.LookupEnv("PATH"); !set {
		if err := os.Setenv("PATH", defaultPath); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // signals end the whole process group
	if errors.Is(cmd.Err, exec.ErrDot) {
		cmd.Err = nil // the image may have a PATH with the working directory
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	// reap waits for the process by its number.
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

// await waits for the end of the command, and forwards signals to its process group. The error is the first signal that
// ended the work.
func (w *Worker) await(pid int) (syscall.WaitStatus, error) {
	ended := make(chan syscall.WaitStatus, 1)
	go func() { ended <- reap(pid) }()
	var stopped error
	var kill <-chan time.Time
	passedOn := map[syscall.Signal]bool{}
	for {
		select {
		case status := <-ended:
			// The image may use this signal to stop its containers.
			if stopped == nil && status.Signaled() && passedOn[status.Signal()] {
				stopped = &Stopped{status.Signal()}
			}
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
		case received := <-w.Others:
			number := asSyscall(received)
			passedOn[number] = true
			_ = syscall.Kill(-pid, number)
		case <-kill:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}

// reap waits for a child process. Process 1 becomes the parent of all orphaned processes, and has to wait for those too:
// otherwise they fill the container's process table while the command runs.
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
