package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

// endLeftover ends the replicas of a run that was killed and could not end them. One would still hold
// the lease, and write.
func (p *Process) endLeftover(ctx context.Context, out io.Writer, stage string) error {
	cache, err := config.CacheDir()
	if err != nil {
		return err
	}
	p.records = filepath.Join(cache, "operators", p.options.Cluster.Context()+"-"+stage)
	entries, err := os.ReadDir(p.records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for an operator that was left: %w", err)
	}
	var alive []proc.Process
	for _, entry := range entries {
		path := filepath.Join(p.records, entry.Name())
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
