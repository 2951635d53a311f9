package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/step"
)

// envtestIndex lists the archives that setup-envtest downloads.
const envtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

// reachable bounds the question whether envtestIndex can be reached at all, so that a machine
// without network goes on to build after a moment.
const reachable = 3 * time.Second

// download fetches envtestNames into a folder with setup-envtest. It fails quickly, before it prints
// anything, when the index cannot be reached: a build follows.
func download(ctx context.Context, out io.Writer, into string) error {
	if err := probe(ctx, envtestIndex); err != nil {
		return err
	}
	version := strings.TrimPrefix(config.Get("KUBERNETES_VERSION"), "v")
	tool := "sigs.k8s.io/controller-runtime/tools/setup-envtest@" + config.Get("SETUP_ENVTEST_VERSION")
	return step.Run(ctx, out, "downloading etcd, kube-apiserver and kubectl "+version, func(ctx context.Context) error {
		dir, err := goCommand(ctx, into, nil, "run", tool, "use", version, "--bin-dir", into, "--print", "path")
		if err != nil {
			return fmt.Errorf("running setup-envtest: %w", err)
		}
		for _, name := range envtestNames {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(into, name)); err != nil {
				return fmt.Errorf("unpacking %s: %w", name, err)
			}
		}
		return nil
	})
}

// probe asks for the header of a file. Its error is a short text: the file, its host and the cause.
func probe(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, http.NoBody)
	if err != nil {
		return err
	}
	what := path.Base(request.URL.Path) + " of " + request.URL.Host
	response, err := http.DefaultClient.Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no response within %s", what, reachable)
	case err != nil:
		return fmt.Errorf("%s: %w", what, cause(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP status %s", what, response.Status)
	}
	return nil
}

// cause strips from an HTTP client's error what names the address once more.
func cause(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err)
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok {
		err = connection.Err
	}
	return err
}

// noise is what the go command writes that is no reason: its progress, and programs' exit statuses.
var noise = regexp.MustCompile(`exit status \d+(: )?|go: downloading .*`)

func oneLine(err error) string {
	return strings.Join(strings.Fields(noise.ReplaceAllString(err.Error(), "")), " ")
}

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
			_, err = goCommand(ctx, into, []string{"GOBIN=" + into}, "install", "-trimpath", "-ldflags", ldflags, c.pkg+"@"+c.version)
		} else {
			var harness string
			if harness, err = config.Harness(); err != nil {
				return err
			}
			dir := filepath.Join(harness, "scripts", "components", c.module)
			_, err = goCommand(ctx, dir, nil, "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(into, c.name), c.pkg)
		}
		if err != nil {
			return fmt.Errorf("building %s: %w", c.name, err)
		}
		return nil
	})
}

// goCommand runs the go command outside any workspace, for this machine, without cgo, and returns its
// standard output. Its error carries the end of what the command wrote.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Env = append(cmd.Env, env...)
	// go removes its own temporary files when it is interrupted, and leaves them when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%w: %s", err, text[max(0, len(text)-2000):])
	}
	return strings.TrimSpace(stdout.String()), nil
}

func isEnvtest(name string) bool {
	return slices.Contains(envtestNames, name)
}

func sortedKeys(m map[string]component) []string {
	return slices.Sorted(maps.Keys(m))
}
