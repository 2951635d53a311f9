package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

// replica is one of the processes of an operator.
type replica struct {
	number     int // from 1
	binary     string
	log        string
	kubeconfig string
	// record is the file that tells a later run which process to end, if this one is killed.
	record string

	// What follows is of the present process.
	cmd         *exec.Cmd
	ended       chan struct{}
	metricsPort int
	probePort   int
	webhookPort int
	// credential is the id of its token, as the audit log has it.
	credential string
}

func (r *replica) running() bool {
	if r.cmd == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// start starts the process and waits until its readiness probe says yes.
func (r *replica) start(ctx context.Context, args, env []string, output io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(r.log), 0o755); err != nil {
		return fmt.Errorf("creating the folder for the operator's log: %w", err)
	}
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the operator's log: %w", err)
	}
	both := io.Writer(log)
	if output != nil {
		both = io.MultiWriter(log, output)
	}
	cmd := exec.Command(r.binary, args...) //nolint:noctx // it outlives the call, and is ended in order
	// KUBECONFIG would otherwise lead an operator without the flag to wherever the reader works.
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+r.kubeconfig), env...)
	cmd.Stdout, cmd.Stderr = both, both
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
	r.cmd, r.ended = cmd, ended
	err = r.remember(ctx)
	if err == nil {
		err = r.waitReady(ctx)
	}
	if err != nil {
		return errors.Join(err, r.end(context.WithoutCancel(ctx), syscall.SIGTERM))
	}
	return nil
}

// remember writes down the process that was just started. It is not forgotten when it ends: the
// record then names a process that is gone.
func (r *replica) remember(ctx context.Context) error {
	now, err := proc.Of(ctx, r.cmd.Process.Pid)
	if err != nil {
		if !r.running() { // waitReady tells why
			return nil
		}
		return err
	}
	text, err := json.Marshal(now)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(r.record), 0o755), config.WriteFile(r.record, text)); err != nil {
		return fmt.Errorf("remembering the operator's process: %w", err)
	}
	return nil
}

func (r *replica) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", r.probePort)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.ended:
			return fmt.Errorf("the operator ended instead of getting ready; its log is %s and ends with\n%s", r.log, tail(r.log))
		case <-ctx.Done():
			return fmt.Errorf("waiting for the operator to be ready (its log is %s): %w", r.log, context.Cause(ctx))
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

// end sends the process a signal and waits until it is gone; it kills one that takes too long.
func (r *replica) end(ctx context.Context, signal syscall.Signal) error {
	if r.cmd == nil {
		return nil
	}
	// The process may have ended by itself, and then there is no process to signal.
	_ = r.cmd.Process.Signal(signal)
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTimeout):
	case <-ctx.Done():
	}
	_ = r.cmd.Process.Kill()
	<-r.ended
	return fmt.Errorf("stopping the operator: it did not end within %s and was killed", stopTimeout)
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
