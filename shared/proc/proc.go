// Package proc names processes so exactly that another run of the harness can find and end them, and
// only them.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// Process names one process for later, also from another process. A pid alone would not do: the
// system gives it to another process after a while.
type Process struct {
	Name string `json:"name"`
	PID  int32  `json:"pid"`
	// Start is when it started, as the system counts: see startOf.
	Start int64 `json:"start"`
}

func describe(ctx context.Context, p *process.Process) (Process, error) {
	name, err := p.NameWithContext(ctx)
	if err != nil {
		return Process{}, fmt.Errorf("reading the name of process %d: %w", p.Pid, err)
	}
	start, err := startOf(ctx, p)
	if err != nil {
		return Process{}, fmt.Errorf("reading the start time of process %d: %w", p.Pid, err)
	}
	return Process{Name: name, PID: p.Pid, Start: start}, nil
}

// Of names a running process.
func Of(ctx context.Context, pid int) (Process, error) {
	p, err := process.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return Process{}, fmt.Errorf("finding process %d: %w", pid, err)
	}
	return describe(ctx, p)
}

// Naming are the running processes with an argument that names a file below dir, as in --log=DIR/x.
func Naming(ctx context.Context, dir string) []Process {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return nil
	}
	var out []Process
	for _, p := range all {
		args, err := p.CmdlineSliceWithContext(ctx)
		if err != nil || !slices.ContainsFunc(args, func(arg string) bool { return names(arg, dir) }) || !sees(p.Pid, dir) {
			continue
		}
		// One that ended meanwhile is of no interest.
		if d, err := describe(ctx, p); err == nil {
			out = append(out, d)
		}
	}
	return out
}

func names(arg, dir string) bool {
	if _, value, isFlag := strings.Cut(arg, "="); isFlag && strings.HasPrefix(arg, "-") {
		arg = value
	}
	return strings.HasPrefix(arg, dir+string(filepath.Separator))
}

// Alive reports whether exactly this process still runs.
func (p Process) Alive(ctx context.Context) bool {
	found, err := process.NewProcessWithContext(ctx, p.PID)
	if err != nil {
		return false
	}
	now, err := describe(ctx, found)
	if err != nil || now.Name != p.Name || now.Start != p.Start {
		return false
	}
	status, err := found.StatusWithContext(ctx)
	return err != nil || !slices.Contains(status, process.Zombie)
}

// End asks processes to end, in the order given, each after the one before it is gone; one that
// takes longer than grace is killed. Processes that are gone already are skipped.
func End(ctx context.Context, out io.Writer, procs []Process, grace time.Duration) error {
	for _, p := range procs {
		if !p.Alive(ctx) {
			continue
		}
		// It may have ended since.
		if err := syscall.Kill(int(p.PID), syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending %s (pid %d): %w", p.Name, p.PID, err)
		}
		if p.Gone(ctx, grace) {
			continue
		}
		fmt.Fprintf(out, "==> %s (pid %d) did not end within %s; killing it\n", p.Name, p.PID, grace)
		if err := syscall.Kill(int(p.PID), syscall.SIGKILL); err != nil && p.Alive(ctx) {
			return fmt.Errorf("killing %s (pid %d): %w", p.Name, p.PID, err)
		}
		if !p.Gone(ctx, grace) {
			return fmt.Errorf("killing %s (pid %d): it is still there after %s", p.Name, p.PID, grace)
		}
	}
	return nil
}

// Gone waits until the process has ended, and reports whether it did in time.
func (p Process) Gone(ctx context.Context, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for p.Alive(ctx) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
