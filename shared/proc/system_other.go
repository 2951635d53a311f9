//go:build !linux

package proc

import (
	"context"

	"github.com/shirou/gopsutil/v4/process"
)

// startOf is the time that the system wrote down at the start, in milliseconds since 1970: setting the clock does not
// change it.
func startOf(ctx context.Context, p *process.Process) (int64, error) {
	return p.CreateTimeWithContext(ctx)
}

// sees reports whether a path means the same to a process as to this one.
func sees(int32, string) bool { return true }
