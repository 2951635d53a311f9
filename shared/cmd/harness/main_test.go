package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

func TestNohupIsRespected(t *testing.T) {
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	for _, nohup := range []bool{false, true} {
		signal.Reset(syscall.SIGHUP)
		if nohup {
			signal.Ignore(syscall.SIGHUP)
		} else if signal.Ignored(syscall.SIGHUP) {
			continue // this test runs under nohup
		}
		if got := slices.Contains(endSignals(), os.Signal(syscall.SIGHUP)); got == nohup {
			t.Errorf("with nohup: %t, a closed terminal ends the harness: %t", nohup, got)
		}
	}
}
