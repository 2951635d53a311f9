package broker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// Exit codes of a command that cannot be run, as in shells.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// executor runs the tasks of one rank. Each task has its own process group.
type executor struct {
	// emit receives output and ends of tasks. It may block; start never calls it.
	emit func(wire.Message)

	mu sync.Mutex
	// groups are the process groups of each job's tasks.
	groups map[int][]int
	tasks  sync.WaitGroup
}

func newExecutor(emit func(wire.Message)) *executor {
	return &executor{emit: emit, groups: map[int][]int{}}
}

// start starts the tasks that a message of the type Start names.
func (e *executor) start(m wire.Message) {
	for local, task := range m.Tasks {
		env := append(slices.Clone(m.Work.Env),
			fmt.Sprintf("FLUX_TASK_RANK=%d", task), fmt.Sprintf("FLUX_TASK_LOCAL_ID=%d", local),
			fmt.Sprintf("FLUX_JOB_ID=f%d", m.Job), fmt.Sprintf("FLUX_JOB_SIZE=%d", m.Work.Tasks),
			fmt.Sprintf("FLUX_JOB_NNODES=%d", m.Work.Nodes))
		out := &lines{send: e.output(m.Job, wire.Stdout)}
		errs := &lines{send: e.output(m.Job, wire.Stderr)}
		end := wire.Message{Type: wire.Exit, Job: m.Job, Task: task}
		cmd := &exec.Cmd{
			Args: expandTags(m.Work, m.Job, task), Env: env, Dir: directory(m.Work.Dir), Stdout: out, Stderr: errs,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		}
		err := startCommand(cmd)
		if err == nil {
			e.add(m.Job, cmd.Process.Pid)
		}
		e.tasks.Go(func() {
			if err != nil {
				end.Code, end.Text = notStarted(err), fmt.Sprintf("%s: %v", cmd.Args[0], words.System(err))
			} else {
				// Like a broker, it waits until no process has the output open any more.
				_ = cmd.Wait()
				end.Code, end.Signal = ended(cmd.ProcessState)
				e.remove(m.Job, cmd.Process.Pid)
				out.flush()
				errs.flush()
			}
			e.emit(end)
		})
	}
}

func (e *executor) output(job int, stream wire.Stream) func([]byte) {
	return func(data []byte) {
		e.emit(wire.Message{Type: wire.Output, Job: job, Stream: stream, Data: data})
	}
}

func (e *executor) add(job, group int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.groups[job] = append(e.groups[job], group)
}

func (e *executor) remove(job, group int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.groups[job] = slices.DeleteFunc(e.groups[job], func(g int) bool { return g == group })
	if len(e.groups[job]) == 0 {
		delete(e.groups, job)
	}
}

// signal sends a signal to all processes of a job on this rank.
func (e *executor) signal(job int, s syscall.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, group := range e.groups[job] {
		_ = syscall.Kill(-group, s) // the group may just have ended
	}
}

// end sends HUP to all tasks, waits for them, and kills those that do not end in time.
func (e *executor) end(patience time.Duration) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL} {
		e.mu.Lock()
		jobs := slices.Collect(maps.Keys(e.groups))
		e.mu.Unlock()
		for _, job := range jobs {
			e.signal(job, s)
		}
		done := make(chan struct{})
		go func() { e.tasks.Wait(); close(done) }()
		select {
		case <-done:
			return
		case <-time.After(patience):
		}
	}
}

// startCommand looks up the program in the PATH of the command's own environment, and starts it.
func startCommand(cmd *exec.Cmd) error {
	path, err := find(cmd.Args[0], cmd.Env)
	if err != nil {
		return err
	}
	cmd.Path = path
	return cmd.Start()
}

func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/bin:/usr/bin"
	for _, entry := range env {
		if value, found := strings.CutPrefix(entry, "PATH="); found {
			path = value
		}
	}
	missing := syscall.ENOENT
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(or(dir, "."), name)
		info, err := os.Stat(candidate)
		if err != nil || name == "" {
			continue
		}
		if !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
		missing = syscall.EACCES
	}
	return "", missing
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// directory is the working directory of the client, if it exists on this rank.
func directory(dir string) string {
	if exists(dir) {
		return dir
	}
	return "/"
}

// notStarted is the exit code for an error of start.
func notStarted(err error) int {
	if errors.Is(err, syscall.ENOENT) {
		return exitNotFound
	}
	return exitNotExecutable
}

// ended returns the exit code of a process, and the signal that killed it, if one did.
func ended(state *os.ProcessState) (code int, killer syscall.Signal) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), status.Signal()
	}
	return state.ExitCode(), 0
}
