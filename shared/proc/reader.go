package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// OutliveReader lets this process end in order after what read its output is gone, as in `make run | tee log` after
// Ctrl-C: a write then fails, and does not end the process.
func OutliveReader() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
