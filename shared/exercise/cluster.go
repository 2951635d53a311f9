package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise/check"
)

// acquireCluster returns the embedded cluster of this clone: the one that is up, or a new one, which ends with the pool. The
// harness makes it, as a program: linked into this one it would double it.
func (s *Servers) acquireCluster(ctx context.Context, note func(string)) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil || s.cluster.ready(ctx) != nil {
		note("the embedded cluster starts; the first time in this clone that takes some minutes")
		if err := s.startCluster(ctx); err != nil {
			return nil, err
		}
	}
	return &lease{pool: s, server: s.cluster, cluster: true}, nil
}

func (s *Servers) startCluster(ctx context.Context) (err error) {
	output, err := s.make(ctx, "cluster")
	if err != nil {
		return err
	}
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(s.root, ".kube", "config")},
		&clientcmd.ConfigOverrides{CurrentContext: config.ContextName("embedded", config.ClusterName())}).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the access to the embedded cluster: %w", err)
	}
	if err := rest.LoadTLSFiles(access); err != nil {
		return fmt.Errorf("reading the access to the embedded cluster: %w", err)
	}
	if err := os.MkdirAll(serversDir(s.root), 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(serversDir(s.root), "")
	if err != nil {
		return err
	}
	c := &server{dir: dir}
	if err := errors.Join(c.connect(access), c.write(ctx, false)); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	s.cluster = c
	if !bytes.Contains(output, []byte("is up already")) {
		s.endCluster = func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_, err := s.make(ctx, "cluster-delete")
			return err
		}
	}
	return nil
}

// stopCluster ends the cluster if the pool started it.
func (s *Servers) stopCluster() error {
	if s.cluster == nil {
		return nil
	}
	err := os.RemoveAll(s.cluster.dir)
	if s.endCluster != nil {
		err = errors.Join(err, s.endCluster())
	}
	s.cluster, s.endCluster = nil, nil
	return err
}

// make runs a target of the workbook for its embedded cluster.
func (s *Servers) make(ctx context.Context, target string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", s.root, target)
	cmd.Env = append(os.Environ(), "CLUSTER=embedded", "MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w\n%s", target, err, bytes.TrimSpace(output))
	}
	return output, nil
}

// deleteNamespaces deletes the namespaces of a run. The controllers of the cluster do the rest.
func (s *server) deleteNamespaces(ctx context.Context, run string) error {
	list, err := s.metadata.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: check.RunLabel + "=" + run})
	if err != nil {
		return err
	}
	var errs []error
	for _, namespace := range list.Items {
		errs = append(errs, ignoreNotFound(s.metadata.Resource(namespaces).Delete(ctx, namespace.Name, metav1.DeleteOptions{})))
	}
	return errors.Join(errs...)
}

// leftNamespaces waits until the namespaces of runs are gone, and returns those that stay.
func (s *server) leftNamespaces(ctx context.Context) ([]string, error) {
	for deadline := time.Now().Add(startLimit); ; {
		list, err := s.metadata.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: check.RunLabel})
		if err != nil || len(list.Items) == 0 || time.Now().After(deadline) {
			var left []string
			if err == nil {
				for _, namespace := range list.Items {
					left = append(left, "namespace "+namespace.Name)
				}
			}
			return left, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
