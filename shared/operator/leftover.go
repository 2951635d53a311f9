package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

// endLeftover ends the replicas of a run that was killed and could not end them. One would still hold
// the lease, and write.
func (p *Process) endLeftover(ctx context.Context, out io.Writer, stage string) (err error) {
	if p.records, err = recordsOf(p.options.Cluster.Context(), stage); err != nil {
		return err
	}
	return endRecorded(ctx, out, p.records)
}

// recordsOf is the folder that says which processes are the operator of a stage on a cluster.
func recordsOf(clusterContext, stage string) (string, error) {
	cache, err := config.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "operators", clusterContext+"-"+stage), nil
}

func endRecorded(ctx context.Context, out io.Writer, records string) error {
	entries, err := os.ReadDir(records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for an operator that was left: %w", err)
	}
	var alive []proc.Process
	for _, entry := range entries {
		path := filepath.Join(records, entry.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("looking for an operator that was left: %w", err)
		}
		left := proc.Process{}
		// One that cannot be read names no process: a machine may lose its power.
		if json.Unmarshal(text, &left) == nil && left.Alive(ctx) {
			fmt.Fprintf(out, "==> found the operator of a run that was killed (pid %d); ending it\n", left.PID)
			alive = append(alive, left)
		}
	}
	return proc.End(ctx, out, alive, stopTimeout)
}

// Forget ends what is left of the stages' operators on a cluster that is gone: processes of runs that were killed, the
// records of processes, and kubeconfigs with tokens.
func Forget(ctx context.Context, out io.Writer, clusterContext string) error {
	repo, err := config.Repo()
	if err != nil {
		return nil //nolint:nilerr // outside a repository there are no stages
	}
	stages, err := config.Stages()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range stages {
		stage := filepath.Base(dir)
		records, err := recordsOf(clusterContext, stage)
		if err == nil {
			err = endRecorded(ctx, out, records)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(records))
		// Those of further replicas have their number appended.
		link := filepath.Join(repo, ".kube", "operator-"+stage)
		kubeconfig := link + "." + url.PathEscape(clusterContext)
		for n := 1; ; n++ {
			path := kubeconfig
			if n > 1 {
				path = fmt.Sprintf("%s.%d", kubeconfig, n)
			}
			if err := os.Remove(path); err != nil && n > 1 {
				break
			}
		}
		if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(link) // it leads nowhere now
		}
	}
	return errors.Join(errs...)
}
