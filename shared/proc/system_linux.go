package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/shirou/gopsutil/v4/process"
)

// startOf is in ticks since the machine was booted. A time of day would be that of the boot and these, and the boot
// moves when the clock is set: after a suspension, by NTP, or where a container has an idea of its own.
func startOf(_ context.Context, p *process.Process) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return 0, err
	}
	// The name stands in parentheses and may hold blanks and parentheses; the start is the 20th field after it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: got %q", p.Pid, text)
	}
	return strconv.ParseInt(string(fields[19]), 10, 64)
}

// sees reports whether a path means the same to a process as to this one: in a container it does not.
func sees(pid int32, path string) bool {
	for ; ; path = filepath.Dir(path) {
		ours, err := os.Stat(path)
		if err != nil && path != filepath.Dir(path) {
			continue
		}
		theirs, theirErr := os.Stat(filepath.Join("/proc", strconv.Itoa(int(pid)), "root", path))
		return err == nil && theirErr == nil && os.SameFile(ours, theirs)
	}
}
