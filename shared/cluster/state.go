package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

// state is what an embedded cluster leaves on disk, so that another process can use it, end it, or
// clean up after an owner that was killed.
type state struct {
	// Hash of the configuration that the cluster was made from.
	Hash string `json:"hash"`
	// Owner is the process that started the others: a suite, or the supervisor.
	Owner proc.Process `json:"owner"`
	// Processes are those of a complete cluster, the last started first.
	Processes []proc.Process `json:"processes"`
	// Ready is set last, when the cluster is complete.
	Ready bool `json:"ready"`
}

// layout is where the files of one embedded cluster are.
type layout struct{ dir string }

func embeddedLayout(name string) (layout, error) {
	dir, err := stateDir(KindEmbedded, name)
	return layout{dir}, err
}

func (l layout) state() string      { return filepath.Join(l.dir, "state.json") }
func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

// logs is a folder that outlives the cluster, so that one can read why it ended.
func (l layout) logs() string { return filepath.Join(l.dir, "logs") }

// run is for what has no use after the cluster: data, certificates, generated configuration.
func (l layout) run() string      { return filepath.Join(l.dir, "run") }
func (l layout) auditLog() string { return filepath.Join(l.dir, "audit", "audit.log") }

// read returns the state on disk; nil if there is none.
func (l layout) read() (*state, error) {
	text, err := os.ReadFile(l.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the cluster: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.state(), err)
	}
	return s, nil
}

// write replaces the state on disk.
func (l layout) write(s *state) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = config.WriteFile(l.state(), text)
	}
	if err != nil {
		return fmt.Errorf("writing the state of the cluster: %w", err)
	}
	return nil
}

// clear ends every process of the cluster that still runs, the last started first, and removes the
// state. The owner is asked first: it ends the others itself. They are found by the folder they work in: a state may be
// lost, or from before the cluster was complete.
func (l layout) clear(ctx context.Context, out io.Writer, s *state) error {
	var procs []proc.Process
	if s.Owner.PID != int32(os.Getpid()) {
		procs = append(procs, s.Owner)
	}
	procs = append(procs, l.remains(ctx)...)
	if err := proc.End(ctx, out, procs, 20*time.Second); err != nil {
		return err
	}
	for _, path := range []string{l.run(), l.kubeconfig(), l.state()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing the state of the cluster: %w", err)
		}
	}
	return nil
}

// remains are the running processes that work in the cluster's folder, the last started first.
func (l layout) remains(ctx context.Context) []proc.Process {
	found := slices.DeleteFunc(proc.Naming(ctx, l.dir), func(p proc.Process) bool { return !isComponent(p.Name) })
	slices.SortFunc(found, func(a, b proc.Process) int { return cmp.Compare(b.Start, a.Start) })
	return found
}

// begin writes the state of a cluster that this process starts. One that is killed meanwhile leaves processes that remains finds.
func (l layout) begin(ctx context.Context, hash string) (*state, error) {
	owner, err := proc.Of(ctx, os.Getpid())
	if err != nil {
		return nil, err
	}
	s := &state{Hash: hash, Owner: owner}
	return s, l.write(s)
}

// complete adds the processes to the state, and marks the cluster as complete.
func (l layout) complete(ctx context.Context, s *state) error {
	s.Processes = l.remains(ctx)
	if got, want := len(s.Processes), len(componentNames); got != want {
		return fmt.Errorf("starting the embedded cluster: %d of %d processes run, see %s", got, want, l.logs())
	}
	s.Ready = true
	return l.write(s)
}
