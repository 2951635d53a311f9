package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A clock that is set moves the time of the boot that the kernel reports, and with it the time at which any process
// seems to have started.
func TestAliveSurvivesAClockThatIsSet(t *testing.T) {
	p := start(t)
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	moved := regexp.MustCompile(`(?m)^btime \d+$`).ReplaceAllFunc(stat, func(line []byte) []byte {
		seconds, err := strconv.Atoi(string(bytes.TrimPrefix(line, []byte("btime "))))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "btime %d", seconds+1)
	})
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "stat"), moved, 0o600); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(int(p.PID))
	if err := os.Symlink(filepath.Join("/proc", pid), filepath.Join(proc, pid)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOST_PROC", proc)
	if !p.Alive(t.Context()) {
		t.Error("a process is taken for another since the clock was set by a second")
	}
}
