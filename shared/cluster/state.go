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
	"sync"
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
	// Processes in the order in which they were started.
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
// state. The owner is asked first: it ends the others itself. Those that the state does not name are
// found by the folder they work in: a state may be lost, or from before a change of its form.
func (l layout) clear(ctx context.Context, out io.Writer, s *state) error {
	var procs []proc.Process
	if s.Owner.PID != int32(os.Getpid()) {
		procs = append(procs, s.Owner)
	}
	for _, p := range slices.Backward(s.Processes) {
		procs = append(procs, p)
	}
	for _, p := range l.remains(ctx) {
		if !slices.Contains(procs, p) {
			procs = append(procs, p)
		}
	}
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

// recorder keeps the state on disk in step with the processes that this one starts. envtest hides
// the pids of its processes, and being killed while one starts must not lose it: so the recorder
// looks at our children again and again until it is closed.
type recorder struct {
	layout layout
	mu     sync.Mutex
	state  state
	// others are children that were there before and are none of the cluster's.
	others []proc.Process
	stop   func()
}

func newRecorder(ctx context.Context, l layout, hash string) (*recorder, error) {
	owner, err := proc.Of(ctx, os.Getpid())
	if err != nil {
		return nil, err
	}
	r := &recorder{layout: l, state: state{Hash: hash, Owner: owner}, others: proc.Children(ctx)}
	if err := l.write(&r.state); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = r.record(ctx) // the last call, in finish, reports
			}
		}
	})
	r.stop = sync.OnceFunc(func() { close(done); watch.Wait() })
	return r, nil
}

// record adds children that are new to the state.
func (r *recorder) record(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, p := range proc.Children(ctx) {
		if isComponent(p.Name) && !slices.Contains(r.others, p) && !slices.Contains(r.state.Processes, p) {
			r.state.Processes = append(r.state.Processes, p)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return r.layout.write(&r.state)
}

// finish ends the watch and marks the cluster as complete.
func (r *recorder) finish(ctx context.Context) error {
	r.stop()
	if err := r.record(ctx); err != nil {
		return err
	}
	// envtest starts each of its programs once before, to ask for its flags.
	r.state.Processes = slices.DeleteFunc(r.state.Processes, func(p proc.Process) bool { return !p.Alive(ctx) })
	if got, want := len(r.state.Processes), len(componentNames); got != want {
		return fmt.Errorf("starting the embedded cluster: %d of %d processes run, see %s", got, want, r.layout.logs())
	}
	r.state.Ready = true
	return r.layout.write(&r.state)
}
