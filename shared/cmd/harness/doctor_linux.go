package main

import (
	"context"
	"os"
)

// checkCgroup tells which version of control groups the kernel has mounted.
func checkCgroup(context.Context) finding {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return finding{"cgroup", true, "version 2", ""}
	}
	return finding{"cgroup", true, "version 1: deprecated in Kubernetes, but the workbook's kind clusters allow it", ""}
}
