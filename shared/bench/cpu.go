package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"example.com/workbook/shared/proc"
)

// CPU is the CPU time that processes have used, by their names: user and system.
type CPU map[string]time.Duration

// CPUOf is what the processes of the embedded cluster with this kubeconfig, this process and some others have used so far.
// This one is called bench.
func CPUOf(ctx context.Context, kubeconfig string, others ...int) (CPU, error) {
	used := CPU{}
	for _, pid := range append([]int{os.Getpid()}, others...) {
		p, err := proc.Of(ctx, pid)
		if err != nil {
			return nil, err
		}
		used.add(ctx, p)
	}
	for _, p := range proc.Naming(ctx, filepath.Dir(kubeconfig)) {
		if int(p.PID) != os.Getpid() && !slices.Contains(others, int(p.PID)) {
			used.add(ctx, p)
		}
	}
	return used, nil
}

// add counts a process. One that has ended meanwhile has no figures.
func (c CPU) add(ctx context.Context, p proc.Process) {
	name := p.Name
	if int(p.PID) == os.Getpid() {
		name = "bench"
	}
	if found, err := process.NewProcessWithContext(ctx, p.PID); err == nil {
		if times, err := found.TimesWithContext(ctx); err == nil {
			c[name] += time.Duration((times.User + times.System) * float64(time.Second))
		}
	}
}

// Since is what was used after an earlier reading.
func (c CPU) Since(before CPU) CPU {
	used := CPU{}
	for name, now := range c {
		used[name] = now - before[name]
	}
	return used
}

// String names the processes with their seconds, those that used most first, and the sum.
func (c CPU) String() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if c[a] != c[b] {
			return int(c[b] - c[a])
		}
		return strings.Compare(a, b)
	})
	var sum time.Duration
	var parts []string
	for _, name := range names {
		sum += c[name]
		parts = append(parts, fmt.Sprintf("%s %.1f", name, c[name].Seconds()))
	}
	return fmt.Sprintf("%.1f s: %s", sum.Seconds(), strings.Join(parts, ", "))
}
