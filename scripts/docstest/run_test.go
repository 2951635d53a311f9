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
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// clusterName is that of the cluster that the chapters use here: a reader's own stays as it is.
var clusterName = cmp.Or(os.Getenv("CLUSTER_NAME"), "docs-test")

// cleanup is how long before the tests' deadline a run ends by itself: terminals and clusters end with it.
const cleanup = 3 * time.Minute

// TestChapters runs the commands of each chapter in a copy of the repository. On the embedded cluster the chapters that
// need containers for something leave that out; on kind only these are run. Each begins without a cluster.
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
	ctx := untilEnded(t)
	var results []result
	for _, chapter := range chapters {
		t.Run(chapter.Name, func(t *testing.T) {
			if ctx.Err() != nil {
				t.Skipf("not run: %v", context.Cause(ctx))
			}
			source, leftOut := script(chapter, cluster == "kind")
			if cluster == "kind" && !needsContainers(chapter) && os.Getenv("DOCS_ALL") == "" {
				t.Skip("nothing in it needs containers: make docs-test runs it on the embedded cluster, and with ALL=1 here")
			}
			if len(chapter.Commands) == leftOut {
				t.Skip("it has no commands to run here")
			}
			// Always the same folder, so that what was built for the last run is found again.
			r := &reader{
				run: ctx, repository: filepath.Join(root, "_artifacts", clusterName, "repository"), cluster: clusterName,
				terminals: map[string]*terminal{},
			}
			copyRepository(ctx, t, root, r.repository)
			t.Cleanup(func() { deleteCluster(context.WithoutCancel(ctx), t, r.repository, cluster) })
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
				results = append(results, done)
			})
			testscript.Run(t, testscript.Params{
				Files: []string{file},
				Setup: func(env *testscript.Env) error { env.Setenv("CLUSTER", cluster); return nil },
				Cmds:  r.commands(),
			})
		})
	}
	t.Logf("on %s:\n%s", cluster, summary(results))
}

var errDeadline = errors.New("the time for the tests is over")

// untilEnded is a context that ends when the run is to end, early enough to end what it has started: on a signal, when
// `go test` is gone, which does not pass signals on, and before the deadline.
func untilEnded(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	// A pipe that nobody reads any more is a run that nobody waits for.
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

// copyRepository makes the copy that a chapter works in as the repository is: the last chapter may have changed it.
func copyRepository(ctx context.Context, t *testing.T, root, dest string) {
	t.Helper()
	if err := os.RemoveAll(dest); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, root, "scripts/copy-tree.sh", ".", dest)
	run(ctx, t, dest, "git", "init", "--quiet")
	run(ctx, t, dest, "git", "add", "--all")
}

func deleteCluster(ctx context.Context, t *testing.T, dir, cluster string) {
	t.Helper()
	t.Setenv("CLUSTER_NAME", clusterName)
	t.Setenv("CLUSTER", cluster)
	run(ctx, t, dir, "make", "cluster-delete")
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
