package e2e

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"example.com/workbook/shared/proc"
)

// interruptOnHangUp has a suite whose terminal is closed end as by Ctrl-C: Ginkgo knows nothing of that signal, and
// without an end the cluster and the operator would run on. A second one, which some shells send, would be taken for
// impatience. nohup is respected. The function that it returns reports whether that has happened.
func interruptOnHangUp() (hungUp func() bool) {
	var happened atomic.Bool
	if signal.Ignored(syscall.SIGHUP) {
		return happened.Load
	}
	proc.OutliveReader()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	go func() {
		<-hangUps
		happened.Store(true)
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // this process is there
	}()
	return happened.Load
}
