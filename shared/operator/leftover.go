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

// endLeftover ends the operator of a run that was killed and could not end it. It would still hold
// the lease, and write.
func (p *Process) endLeftover(ctx context.Context, out io.Writer, stage string) error {
	cache, err := config.CacheDir()
	if err != nil {
		return err
	}
	p.record = filepath.Join(cache, "operators", p.options.Cluster.Context()+"-"+stage+".json")
	text, err := os.ReadFile(p.record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for an operator that was left: %w", err)
	}
	left := proc.Process{}
	if err := json.Unmarshal(text, &left); err != nil {
		return fmt.Errorf("looking for an operator that was left: reading %s: %w", p.record, err)
	}
	if !left.Alive(ctx) {
		return nil
	}
	fmt.Fprintf(out, "==> found the operator of a run that was killed (pid %d); ending it\n", left.PID)
	return proc.End(ctx, out, []proc.Process{left}, stopTimeout)
}

// remember writes down the process that was just started. It is not forgotten when it ends: the
// record then names a process that is gone.
func (p *Process) remember(ctx context.Context) error {
	now, err := proc.Of(ctx, p.Pid())
	if err != nil {
		select {
		case <-p.ended: // waitReady tells why
			return nil
		default:
			return err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("remembering the operator's process: %w", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.record), 0o755), os.WriteFile(p.record, text, 0o600)); err != nil {
		return fmt.Errorf("remembering the operator's process: %w", err)
	}
	return nil
}
