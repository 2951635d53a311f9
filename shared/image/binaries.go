// Package image makes the container images of a stage: it builds the stage's programs on this
// machine, wraps them by the stage's Dockerfile, and names the result by what is in it.
package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/config"
)

// manager is the name of the program in cmd/ itself; one in cmd/NAME is called NAME.
const manager = "manager"

// Binary builds one program of a stage for an operating system and architecture, and returns its
// path: STAGE/bin/GOOS-GOARCH/NAME. It is static, and the same for the same source in the same folder: its
// hash names images. The program is cmd/ for the name "manager", else cmd/NAME.
func Binary(ctx context.Context, stageDir, name, goos, goarch string) (string, error) {
	stageDir, err := filepath.Abs(stageDir)
	if err != nil {
		return "", fmt.Errorf("finding the stage: %w", err)
	}
	path := filepath.Join(stageDir, "bin", goos+"-"+goarch, name)
	args := slices.Concat([]string{"build"}, config.PlainBuild,
		[]string{"-buildvcs=false", "-ldflags=-s -w", "-o", path, "./" + packageOf(name)})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = stageDir
	// A stage is built as it is when copied out of the workbook. With -trimpath, Go's cache would have nothing for it of
	// what tests and other programs are compiled from.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s of %s: %w\n%s", name, filepath.Base(stageDir), err, strings.TrimSpace(string(output)))
	}
	return path, setMode(path)
}

// packageOf is the folder in a stage that a program is built from.
func packageOf(name string) string {
	if name == manager {
		return "cmd"
	}
	return "cmd/" + name
}
