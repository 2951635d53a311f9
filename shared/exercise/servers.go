package exercise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Servers keeps API servers alive between runs. The zero value is not usable; NewServers makes one. It may be used by
// several goroutines.
type Servers struct {
	root string
	// alone is set if the pool uses no server of another process.
	alone bool

	// mu is held while a server starts: who comes second uses the same one.
	mu       sync.Mutex
	shared   *server
	attached bool
	own      []*server
	clusters map[Needs]*cluster

	// cleaning is held while the namespaces of finished runs are deleted: those of all that have finished by then, at once.
	cleaning sync.Mutex
	finished sync.Map
	cleaners sync.WaitGroup
	failures chan error
}

// NewServers returns a pool for the clone at root. It starts a server when a run first needs one. Runs elsewhere in the same
// clone find that server and use it.
func NewServers(root string) *Servers {
	return &Servers{root: root, failures: make(chan error, 1), clusters: map[Needs]*cluster{}}
}

// Start starts the server that runs share, or attaches to the one of another process, without waiting for a run.
func (s *Servers) Start(ctx context.Context, note func(string)) error {
	_, err := s.sharedServer(ctx, note)
	return err
}

// Close stops the servers that the pool started. On a server of another process it first deletes what the runs left.
func (s *Servers) Close() error {
	s.mu.Lock()
	attached := s.attached
	s.mu.Unlock()
	if attached {
		s.cleaners.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.shared != nil && !s.attached {
		errs = append(errs, s.shared.stop())
	}
	for _, own := range s.own {
		errs = append(errs, own.stop())
	}
	s.shared, s.own = nil, nil
	return errors.Join(append(errs, s.stopClusters())...)
}

// lease is the use of a server by one run.
type lease struct {
	pool   *Servers
	server *server
	// own is a server that no other run uses meanwhile.
	own bool
	// cluster is set if the server is that of a cluster.
	cluster *cluster
}

func (l *lease) file() string { return l.server.file() }

// acquireFor returns what a check of the exercise runs against.
func (s *Servers) acquireFor(ctx context.Context, e Exercise, note func(string)) (*lease, error) {
	// After Ctrl-C no server starts.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if kindOf[e.Needs] != "" {
		return s.acquireCluster(ctx, e.Needs, note)
	}
	return s.acquire(ctx, e.OwnServer, note)
}

func (s *Servers) acquire(ctx context.Context, own bool, note func(string)) (*lease, error) {
	if own {
		return s.acquireOwn(ctx, note)
	}
	server, err := s.sharedServer(ctx, note)
	if err != nil {
		return nil, err
	}
	return &lease{pool: s, server: server}, nil
}

// sharedServer returns a server that responds: the one of before, that of another process, or a new one.
func (s *Servers) sharedServer(ctx context.Context, note func(string)) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared != nil {
		if s.shared.ready(ctx) == nil {
			return s.shared, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		note("the API server does not respond any more; another one starts")
		if !s.attached {
			// It may have died: how it ends is of no interest.
			_ = s.shared.stop()
		}
		s.shared = nil
	}
	if !s.alone {
		if other := attach(ctx, s.root); other != nil {
			s.shared, s.attached = other, true
			return other, nil
		}
	}
	server, err := start(ctx, s.root, true, note)
	if err != nil {
		return nil, err
	}
	s.shared, s.attached = server, false
	return server, nil
}

func (s *Servers) acquireOwn(ctx context.Context, note func(string)) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, server := range s.own {
		if server.busy {
			continue
		}
		if server.ready(ctx) == nil {
			server.busy = true
			return &lease{pool: s, server: server, own: true}, nil
		}
		_ = server.stop()
		s.own = append(s.own[:i], s.own[i+1:]...)
		break
	}
	server, err := start(ctx, s.root, false, note)
	if err != nil {
		return nil, err
	}
	server.busy = true
	s.own = append(s.own, server)
	return &lease{pool: s, server: server, own: true}, nil
}

// release deletes what the run left on the server. On a shared one that happens in the background: a reader waits for the
// result, and not for this.
func (l *lease) release(ctx context.Context, run string) error {
	if l.cluster != nil {
		return l.server.deleteNamespaces(ctx, run)
	}
	if !l.own {
		l.pool.finished.Store(run, true)
		// Also after Ctrl-C: the server may outlive the runs.
		ctx = context.WithoutCancel(ctx)
		l.pool.cleaners.Go(func() { l.pool.clean(ctx, l.server) })
		return nil
	}
	err := l.server.reset(ctx)
	if err != nil && l.server.ready(ctx) != nil {
		err = fmt.Errorf("the API server died during the run: %w", err)
	}
	l.pool.mu.Lock()
	l.server.busy = false
	l.pool.mu.Unlock()
	return err
}

// cleanLimit is how long one deletion of what runs left may take.
const cleanLimit = 5 * time.Minute

func (s *Servers) clean(ctx context.Context, server *server) {
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	var runs []string
	s.finished.Range(func(run, _ any) bool {
		runs = append(runs, run.(string))
		s.finished.Delete(run)
		return true
	})
	if len(runs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if err := server.deleteRuns(ctx, runs); err != nil {
		select {
		case s.failures <- err:
		default:
		}
	}
}

// leftovers are the objects on the servers that no run should have left.
func (s *Servers) leftovers(ctx context.Context) ([]string, error) {
	s.cleaners.Wait()
	select {
	case err := <-s.failures:
		return nil, fmt.Errorf("deleting what runs left: %w", err)
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	servers := s.own
	if s.shared != nil && !s.attached {
		servers = append(slices.Clip(servers), s.shared)
	}
	for _, server := range servers {
		objects, err := server.added(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			all = append(all, o.String())
		}
	}
	for _, c := range s.clusters {
		left, err := c.leftNamespaces(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, left...)
	}
	return all, nil
}
