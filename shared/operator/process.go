package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds for a local operator.
const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
)

// Process is an operator that runs as a local process.
type Process struct {
	options    Options
	manifest   *manifest
	binary     string
	kubeconfig string
	help       string
	// record is the file that tells a later run which process to end, if this one is killed.
	record string

	cmd         *exec.Cmd
	ended       chan struct{}
	metricsPort int
	probePort   int
}

var _ Operator = &Process{}

// User is that of the ServiceAccount whose token the process has.
func (p *Process) User() string { return p.manifest.user() }

// Namespace is the one that the manifest deploys the operator to.
func (p *Process) Namespace() string { return p.manifest.deployment.Namespace }

// ServiceAccount is the one that the manifest names.
func (p *Process) ServiceAccount() string { return p.manifest.serviceAccount() }

// Pid is the present process's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended is closed when the present process has ended, for whatever reason.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// arguments are the manifest's, then what a process next to others needs: addresses of its own, and
// the namespace that a pod would read from its mounted token.
func (p *Process) arguments(ctx context.Context) ([]string, error) {
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	p.metricsPort, p.probePort = ports[0], ports[1]
	args := append([]string{}, p.manifest.container.Args...)
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", p.kubeconfig},
		{"metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", p.metricsPort)},
		{"health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", p.probePort)},
		{"leader-election-namespace", p.Namespace()},
	} {
		if strings.Contains(p.help, "-"+flag.name) {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	return append(args, p.options.Args...), nil
}

// Start starts the process and waits until its readiness probe says yes.
func (p *Process) Start(ctx context.Context) error {
	args, err := p.arguments(ctx)
	if err != nil {
		return err
	}
	env, err := p.manifest.environment()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.options.Log), 0o755); err != nil {
		return fmt.Errorf("creating the folder for the operator's log: %w", err)
	}
	log, err := os.OpenFile(p.options.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the operator's log: %w", err)
	}
	var output io.Writer = log
	if p.options.Output != nil {
		output = io.MultiWriter(log, p.options.Output)
	}
	cmd := exec.Command(p.binary, args...) //nolint:noctx // it outlives the call, and is ended in order
	// KUBECONFIG would otherwise lead an operator without the flag to wherever the reader works.
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+p.kubeconfig), env...)
	cmd.Stdout, cmd.Stderr = output, output
	// A process group of its own: Ctrl-C reaches us, and we end it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("starting the operator: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = log.Close()
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	if err := p.remember(ctx); err != nil {
		return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	if err := p.waitReady(ctx); err != nil {
		return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (p *Process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", p.probePort)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return fmt.Errorf("the operator ended instead of getting ready; its log is %s and ends with\n%s", p.options.Log, tail(p.options.Log))
		case <-ctx.Done():
			return fmt.Errorf("waiting for the operator to be ready (its log is %s): %w", p.options.Log, context.Cause(ctx))
		case <-tick.C:
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				return fmt.Errorf("asking the operator whether it is ready: %w", err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				continue
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}

// Stop asks the process to end, and kills it if that takes too long.
func (p *Process) Stop(ctx context.Context) error {
	return p.end(ctx, syscall.SIGTERM)
}

func (p *Process) end(ctx context.Context, signal syscall.Signal) error {
	if p.cmd == nil {
		return nil
	}
	// The process may have ended by itself, and then there is nobody to signal.
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("stopping the operator: it did not end within %s and was killed", stopTimeout)
}

// Restart ends the process in order and starts another.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Kill kills the process and starts another.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.end(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Logs is the whole log file, all runs of this suite.
func (p *Process) Logs(context.Context) (string, error) {
	text, err := os.ReadFile(p.options.Log)
	if err != nil {
		return "", fmt.Errorf("reading the operator's log: %w", err)
	}
	return string(text), nil
}

// Metrics asks the process directly.
func (p *Process) Metrics(ctx context.Context, token string) (int, string, error) {
	return getMetrics(ctx, p.metricsPort, token)
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
