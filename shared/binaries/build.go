package binaries

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/step"
)

// niceness leaves the machine usable during a build that takes minutes.
const niceness = "10"

// build makes the program of one component from the Go module proxy, into a folder.
func build(ctx context.Context, out io.Writer, c component, into string) error {
	flags := []string{"-s", "-w"}
	for _, stamp := range c.stamps {
		flags = append(flags, "-X", stamp)
	}
	ldflags := strings.Join(flags, " ")
	what := fmt.Sprintf("building %s %s", c.name, c.version)
	if c.note != "" {
		what += " (" + c.note + ")"
	}
	return step.Run(ctx, out, what, func(ctx context.Context) error {
		var err error
		if c.module == "" {
			err = compile(ctx, out, c.name, into, []string{"GOBIN=" + into}, "install", "-ldflags", ldflags, c.pkg+"@"+c.version)
		} else {
			var harness string
			if harness, err = config.Harness(); err != nil {
				return err
			}
			dir := filepath.Join(harness, "scripts", "components", c.module)
			err = compile(ctx, out, c.name, dir, nil, "build", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(into, c.name), c.pkg)
		}
		if err != nil {
			return fmt.Errorf("building %s: %w", c.name, err)
		}
		return nil
	})
}

// compile runs go build or go install, niced, and prints how far it has got.
func compile(ctx context.Context, out io.Writer, name, dir string, env []string, verb string, args ...string) error {
	planned, built := &goLog{prefix: "# "}, &goLog{}
	defer step.Progress(out, func() string { return name + ": " + share(planned, built) })()
	args = slices.Concat(config.PlainBuild, []string{"-trimpath"}, args)
	// What -n says would be built is what -v says is built: all that is not in Go's cache.
	if err := niceGo(ctx, dir, env, planned, append([]string{verb, "-n"}, args...)...); err != nil {
		return err
	}
	planned.done()
	return niceGo(ctx, dir, env, built, append([]string{verb, "-v"}, args...)...)
}

func niceGo(ctx context.Context, dir string, env []string, log *goLog, args ...string) error {
	cmd := goCmd(ctx, dir, env, "nice", append([]string{"-n", niceness, "go"}, args...)...)
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, log.end())
	}
	return nil
}

// goCommand runs the go command and returns its standard output. Its error carries the end of what the command wrote.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := goCmd(ctx, dir, env, "go", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, tail(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// goCmd runs a go command outside any workspace, for this machine, without cgo.
func goCmd(ctx context.Context, dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Env = append(cmd.Env, env...)
	// go removes its own temporary files when it is interrupted, and leaves them when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

func sortedKeys(m map[string]component) []string {
	return slices.Sorted(maps.Keys(m))
}
