package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise/check"
)

// kindOf is the kind of cluster that exercises of a sort need, as CLUSTER and the kubeconfig name it.
var kindOf = map[Needs]string{Cluster: "embedded", Kind: "kind"}

// cluster is one that runs share.
type cluster struct {
	*server
	// kubectl is a program that the harness has found, or has put into its cache: for kind alone, where checks use it.
	kubectl string
	// end ends the cluster. It is nil if the pool has not started it.
	end func() error
}

// acquireCluster returns the cluster of this clone: the one that is up, or a new one, which ends with the pool. The harness
// makes it, as a program: linked into this one it would double it.
func (s *Servers) acquireCluster(ctx context.Context, needs Needs, note func(string)) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[needs]
	if c == nil || c.ready(ctx) != nil {
		delete(s.clusters, needs)
		note("the " + kindOf[needs] + " cluster starts; the first time in this clone that takes some minutes")
		err := c.close()
		if err == nil {
			c, err = s.startCluster(ctx, kindOf[needs])
		}
		if err != nil {
			return nil, err
		}
		s.clusters[needs] = c
	}
	return &lease{pool: s, server: c.server, cluster: c}, nil
}

func (s *Servers) startCluster(ctx context.Context, kind string) (*cluster, error) {
	output, err := s.make(ctx, "cluster", kind)
	if err != nil {
		return nil, err
	}
	c := &cluster{server: &server{}}
	if !bytes.Contains(output, []byte("is up already")) {
		c.end = func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_, err := s.make(ctx, "cluster-delete", kind)
			return err
		}
	}
	if err := s.reach(ctx, c, kind); err != nil {
		return nil, errors.Join(fmt.Errorf("the access to the %s cluster: %w", kind, err), c.close())
	}
	return c, nil
}

// reach gives a cluster that is up what runs need of it.
func (s *Servers) reach(ctx context.Context, c *cluster, kind string) error {
	if kind == kindOf[Kind] {
		output, err := s.make(ctx, "kubectl", kind)
		if err != nil {
			return err
		}
		c.kubectl = lastLine(output)
	}
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(s.root, ".kube", "config")},
		&clientcmd.ConfigOverrides{CurrentContext: config.ContextName(kind, config.ClusterName())}).ClientConfig()
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(access); err != nil {
		return err
	}
	if err := os.MkdirAll(serversDir(s.root), 0o700); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp(serversDir(s.root), ""); err != nil {
		return err
	}
	return errors.Join(c.connect(access), c.write(ctx, false))
}

// close ends the cluster if the pool has started it. There may be none.
func (c *cluster) close() error {
	if c == nil {
		return nil
	}
	err := os.RemoveAll(c.dir)
	if c.end != nil {
		err = errors.Join(err, c.end())
	}
	return err
}

func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}

// stopClusters ends the clusters that the pool started.
func (s *Servers) stopClusters() error {
	var errs []error
	for _, c := range s.clusters {
		errs = append(errs, c.close())
	}
	clear(s.clusters)
	return errors.Join(errs...)
}

// make runs a target of the workbook for its cluster of a kind.
func (s *Servers) make(ctx context.Context, target, kind string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", s.root, target)
	cmd.Env = append(os.Environ(), "CLUSTER="+kind, "MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=")
	// To make alone it would be of no use: make leaves it to the terminal to interrupt its children, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
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
		// Jobs first. With backoffLimitPerIndex a failed pod keeps its finalizer until another one is created in its place, which in a
		// namespace that is being deleted never happens; and the namespace controller deletes Jobs after pods, so never.
		// Then the pods at once: where a check has deleted their node, nothing would end them but the pod garbage collector, after
		// more than a minute.
		errs = append(errs,
			ignoreNotFound(s.metadata.Resource(jobs).Namespace(namespace.Name).DeleteCollection(ctx, now, metav1.ListOptions{})),
			ignoreNotFound(s.metadata.Resource(namespaces).Delete(ctx, namespace.Name, metav1.DeleteOptions{})),
			ignoreNotFound(s.metadata.Resource(pods).Namespace(namespace.Name).DeleteCollection(ctx, now, metav1.ListOptions{})))
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
