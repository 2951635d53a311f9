// Package bench measures what the operator costs: how long a Goop over 100, 1,000 and 5,000 nodes takes, with how many
// writes and reconciliations, with how much memory and CPU time, and how large its objects are. For comparison it
// measures a plain DaemonSet that a shell loop watches. `make stage-4 bench` runs it on the embedded cluster. It
// simulates the nodes and their kubelets; API server, scheduler, DaemonSet controller and garbage collector are those of
// Kubernetes.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/e2e"
)

const limit = 28 * time.Minute

// sizes returns the numbers of nodes in increasing order, from BENCH_NODES=100,1000.
func sizes() []int {
	text := os.Getenv("BENCH_NODES")
	if text == "" {
		text = "100,1000,5000"
	}
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || (len(all) > 0 && n <= all[len(all)-1]) {
			panic("BENCH_NODES=" + text + ": give whole numbers above zero that rise, with commas between them")
		}
		all = append(all, n)
	}
	return all
}

func BenchmarkGoops(b *testing.B) {
	// The embedded cluster is used even with a container engine, because a cluster of containers has too few nodes.
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	env, err := e2e.Setup(ctx, os.Stdout, e2e.Stage{
		Name:        "04-goop-bench",
		Dir:         "../../..",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	})
	must(b, err)
	defer func() { must(b, env.Close(context.WithoutCancel(ctx))) }()
	r := newRunner(ctx, b, env)
	r.startKubelets()
	var all []figures
	for _, n := range sizes() {
		r.addNodes(n)
		fmt.Printf("\n%d nodes\n", n)
		f := figures{nodes: n}
		f.everywhere = r.measureGoop(n, nil)
		describeGoop("a Goop without jobCount, whose workers succeed", n, f.everywhere)
		f.counted = r.measureGoop(n, new(int32(n)))
		describeGoop("a Goop with a jobCount, whose workers all fail", n, f.counted)
		f.plain = r.measurePlain()
		describePlain(f.plain)
		all = append(all, f)
	}
	report(b, all)
	check(b, all)
}

// runner creates nodes and Goops, and measures them.
type runner struct {
	*testing.B
	ctx      context.Context
	env      *e2e.Env
	client   client.Client
	clients  kubernetes.Interface
	token    string
	kubelets *kubelets
	// nodes is the number of nodes.
	nodes int
}

func newRunner(ctx context.Context, b *testing.B, env *e2e.Env) *runner {
	r := &runner{B: b, ctx: ctx, env: env, token: metricsToken(ctx, b, env)}
	unlimited := rest.CopyConfig(env.Config)
	unlimited.QPS = -1
	var err error
	r.client, err = client.New(unlimited, client.Options{Scheme: env.Client.Scheme()})
	must(b, err)
	r.clients, err = kubernetes.NewForConfig(unlimited)
	must(b, err)
	return r
}

// until polls until a condition is true.
func (r *runner) until(what string, done func() bool) {
	r.Helper()
	err := wait.PollUntilContextCancel(r.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		r.Fatalf("waiting for %s: %v", what, err)
	}
}

// plainFile returns a file of the solution without an operator.
func (r *runner) plainFile(name string) string { return filepath.Join(r.env.Stage.Dir, "plain", name) }

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// nodeName returns the name of the nth node.
func nodeName(n int) string { return fmt.Sprintf("bench-%04d", n) }
