package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/shared/config"
)

// Serve starts an embedded cluster and keeps it up until ctx ends or one of its processes does;
// then it ends the rest. It is what the supervisor of a cluster runs that outlives its maker.
func Serve(ctx context.Context, out io.Writer, name string) error {
	if name == "" {
		name = config.ClusterName()
	}
	if err := checkName(name); err != nil {
		return err
	}
	cleanup := context.WithoutCancel(ctx)
	if err := startEmbedded(ctx, out, name); err != nil {
		return errors.Join(err, endEmbedded(cleanup, out, name))
	}
	fmt.Fprintf(out, "==> the embedded cluster %s is up\n", name)
	lost := watch(ctx, name)
	return errors.Join(lost, endOwn(cleanup, out, name))
}

// endOwn ends the cluster, unless its state is lost or another process has made the cluster anew: then the process that did
// that has ended the rest.
func endOwn(ctx context.Context, out io.Writer, name string) error {
	l, err := embeddedLayout(name)
	if err != nil {
		return err
	}
	if s, err := l.read(); err != nil || s == nil || s.Owner.PID != int32(os.Getpid()) {
		return err
	}
	return endEmbedded(ctx, out, name)
}

// watch returns nil when ctx ends, and an error when a process of the cluster does first.
func watch(ctx context.Context, name string) error {
	l, err := embeddedLayout(name)
	if err != nil {
		return err
	}
	s, err := l.read()
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, p := range s.Processes {
			if !p.Alive(context.WithoutCancel(ctx)) {
				return fmt.Errorf("%s (pid %d) ended by itself: see %s", p.Name, p.PID, l.logs())
			}
		}
	}
}

// startSupervisor starts the command that serves the cluster, in a session of its own so that it
// survives the terminal, and waits until the cluster is healthy.
func startSupervisor(ctx context.Context, out io.Writer, o Options) error {
	l, err := embeddedLayout(o.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("creating the cluster's folder: %w", err)
	}
	path := filepath.Join(l.dir, "supervisor.log")
	log, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the supervisor's log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(o.Supervisor[0], o.Supervisor[1:]...) //nolint:noctx // it outlives this process
	cmd.Env = append(os.Environ(), "CLUSTER_NAME="+o.Name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(path)
			return fmt.Errorf("starting the embedded cluster: %s (%w)", strings.TrimSpace(string(text)), err)
		case <-ctx.Done():
			fmt.Fprintln(out, "==> interrupted: ending what was started")
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended //nolint:errcheck // it was asked to end
			return context.Cause(ctx)
		case <-tick.C:
			if s, err := l.read(); err == nil && s != nil && s.Ready && s.Owner.PID == int32(cmd.Process.Pid) {
				return nil
			}
		}
	}
}
