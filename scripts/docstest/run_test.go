package docstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// clusterName is that of the cluster that the chapters use here, and that is deleted after each: not CLUSTER_NAME, which may
// name a reader's own.
var clusterName = cmp.Or(os.Getenv("DOCS_CLUSTER_NAME"), "docs-test")

// cleanup is how long before the tests' deadline a run ends by itself: terminals and clusters end with it.
const cleanup = 3 * time.Minute

// TestChapters runs the commands of each chapter in a copy of the repository. On the embedded cluster the chapters that
// need containers for something leave that out; on kind only these are run. Each begins without a cluster, and several
// run side by side, each on a cluster of its own.
func TestChapters(t *testing.T) {
	cluster := os.Getenv("DOCS_CLUSTER")
	if cluster == "" {
		t.Skip("make docs-test runs the chapters")
	}
	// DOCS_ROOT is another repository: tests of this package have one of their own.
	root, err := filepath.Abs(cmp.Or(os.Getenv("DOCS_ROOT"), "../.."))
	if err != nil {
		t.Fatal(err)
	}
	chapters, err := Chapters(filepath.Join(root, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	if chapters, err = choose(chapters, os.Getenv("DOCS_CHAPTER")); err != nil {
		t.Fatal(err)
	}
	limits, err := readLimits(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{run: untilEnded(t), root: root, cluster: cluster, limits: limits}
	queue := make(chan Chapter, len(chapters))
	for _, chapter := range limits.order(chapters) {
		queue <- chapter
	}
	close(queue)
	var lanes sync.WaitGroup
	for n := range limits.lanes {
		name := clusterName
		if n > 0 {
			name = fmt.Sprintf("%s-%d", clusterName, n+1)
		}
		lanes.Go(func() {
			for chapter := range queue {
				t.Run(chapter.Name, func(t *testing.T) { s.test(t, chapter, name) })
			}
		})
	}
	lanes.Wait()
	t.Logf("on %s:\n%s", cluster, summary(s.results))
}

// suite is a run of chapters.
type suite struct {
	run           context.Context
	root, cluster string
	limits        limits

	mu      sync.Mutex
	results []result
}

// test runs a chapter on the cluster of that name.
func (s *suite) test(t *testing.T, chapter Chapter, name string) {
	t.Helper()
	if s.run.Err() != nil {
		t.Skipf("not run: %v", context.Cause(s.run))
	}
	source, leftOut := script(chapter, s.cluster == "kind")
	if s.cluster == "kind" && !needsContainers(chapter) && os.Getenv("DOCS_ALL") == "" {
		t.Skip("nothing in it needs containers: make docs-test runs it on the embedded cluster, and with ALL=1 here")
	}
	if len(chapter.Commands) == leftOut {
		t.Skip("it has no commands to run here")
	}
	if s.limits.expired() {
		s.add(result{chapter: chapter.Name, leftOut: len(chapter.Commands), outcome: "NOT RUN, no time left"})
		t.Skip("no time left")
	}
	// Always the same folder, so that what was built for the last run is found again.
	r := &reader{
		run: s.run, repository: filepath.Join(s.root, "_artifacts", name, "repository"), cluster: name,
		terminals: map[string]*terminal{},
	}
	copyRepository(s.run, t, s.root, r.repository)
	t.Cleanup(func() {
		// Also when the run was ended.
		run(context.WithoutCancel(s.run), t, r.repository, "make", "cluster-delete", "CLUSTER="+s.cluster, "CLUSTER_NAME="+name)
	})
	t.Cleanup(func() {
		if err := r.leave(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), chapter.Name+".txtar")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	// testscript's tests are parallel ones, and run when this function has returned.
	t.Cleanup(func() {
		done := result{chapter: chapter.Name, took: time.Since(begin), run: r.blocks, leftOut: leftOut, outcome: "ok"}
		if t.Failed() {
			done.outcome = "FAILED at " + cmp.Or(r.failed, "its start")
		}
		s.add(done)
	})
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Setup: func(env *testscript.Env) error { env.Setenv("CLUSTER", s.cluster); return nil },
		Cmds:  r.commands(),
	})
}

func (s *suite) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
}

var errDeadline = errors.New("the time for the tests is over")

// untilEnded is a context that ends when the run is to end, early enough to end what it has started: on a signal, when
// `go test` is gone, which does not pass signals on, and before the deadline.
func untilEnded(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	// A pipe without a reader belongs to a run that no process waits for.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	var deadline <-chan time.Time
	if at, found := t.Deadline(); found {
		deadline = time.After(time.Until(at) - cleanup)
	}
	parent := os.Getppid()
	alive := time.NewTicker(time.Second)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		defer alive.Stop()
		for {
			select {
			case got := <-signals:
				end(fmt.Errorf("signal: %v", got))
			case <-deadline:
				end(errDeadline)
			case <-alive.C:
				if os.Getppid() != parent {
					end(errors.New("go test is gone"))
				}
			case <-over:
				signal.Stop(signals)
				return
			}
		}
	}()
	return ctx
}

func needsContainers(chapter Chapter) bool {
	return slices.ContainsFunc(chapter.Commands, func(command Command) bool { return command.Options.Kind })
}

// copyRepository makes the copy that a chapter works in as the repository is: the last chapter may have changed it, and have made
// a project beside it.
func copyRepository(ctx context.Context, t *testing.T, root, dest string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Dir(dest)); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, root, "scripts/copy-tree.sh", ".", dest)
	run(ctx, t, dest, "git", "init", "--quiet")
	run(ctx, t, dest, "git", "add", "--all")
}

// run runs a command that the reader's Ctrl-C does not end: it is short, or what follows a Ctrl-C.
func run(ctx context.Context, t *testing.T, dir string, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, output)
	}
}
