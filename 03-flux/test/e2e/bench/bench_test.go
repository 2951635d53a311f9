// Package bench measures the cost of the operator: how many Fluxes per second it reconciles, with how many requests,
// how much CPU time and memory; its cost in steady state with many Fluxes; and how long it takes until the pods of
// several Fluxes, and those of a large one, are created and reported to be ready. `make stage-3 bench` runs it on the
// embedded cluster, with simulated kubelets. It asserts nothing, and prints all figures.
package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/e2e"
)

const limit = time.Hour

var (
	// atOnce is the number of Fluxes of the given size that are created at a time, in this many waves.
	atOnce = bench.Number("BENCH_FLUXES", 50)
	waves  = bench.Number("BENCH_WAVES", 4)
	small  = bench.Number("BENCH_SIZE", 4)
	// large is the size of the one large Flux.
	large = bench.Number("BENCH_LARGE_SIZE", 1000)
	// many is the number of Fluxes of BenchmarkHerd, whose pods stay Pending.
	many = bench.Number("BENCH_MANY", 1000)
)

// stage is what the benchmarks need.
var stage = e2e.Stage{
	Name:        "03-flux-bench",
	Dir:         "../../..",
	Images:      map[string]string{"controller": "manager"},
	AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
}

// BenchmarkFluxes simulates the kubelets of several Fluxes, and then those of a large one.
func BenchmarkFluxes(b *testing.B) {
	// The embedded cluster is used even if a container engine is available: the figures are of an operator without
	// containers next to it.
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	env, err := e2e.Setup(ctx, os.Stdout, stage)
	must(b, err)
	defer func() { must(b, env.Close(context.WithoutCancel(ctx))) }()
	r := &runner{B: b, ctx: ctx, env: env, token: metricsToken(ctx, b, env)}

	var herd []figures
	for range waves {
		herd = append(herd, r.measure(atOnce, small))
	}
	one := r.measure(1, large)
	report(b, herd, one)
}

// runner creates Fluxes and measures them.
type runner struct {
	*testing.B
	ctx   context.Context
	env   *e2e.Env
	token string
}

// measure creates n Fluxes of a size at once, waits until all their pods exist, and then reports them ready.
func (r *runner) measure(n, size int) figures {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{cluster.ManualPodsLabel: "true"},
	}}
	must(r.B, r.env.Client.Create(r.ctx, namespace))
	r.waitQuiet()
	stopMemory := r.watchMemory()
	pods, stop := r.watchPods(namespace.Name)
	defer stop()
	reconciliations := r.reconciliations()
	f := figures{fluxes: n, pods: n * size}

	began := time.Now()
	var creators errgroup.Group
	creators.SetLimit(kubelets)
	for i := range n {
		creators.Go(func() error {
			return r.env.Client.Create(r.ctx, &v1alpha1.Flux{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("flux-%03d", i)},
				Spec:       v1alpha1.FluxSpec{Image: "example.com/none", Command: []string{"hostname"}, Size: int32(size)},
			})
		})
	}
	must(r.B, creators.Wait())
	f.created = time.Since(began)
	r.until(func() bool { return pods.made() == f.pods })
	f.made = pods.last().Sub(began)
	r.waitQuiet()

	simulating := time.Now()
	must(r.B, r.makeReady(namespace.Name))
	f.simulated = time.Since(simulating)
	r.until(func() bool { return r.readyRanks(namespace.Name) == f.pods })
	f.ready = time.Since(simulating)
	r.waitQuiet()

	f.events, f.reconciliations, f.peak = pods.events(), r.reconciliations().minus(reconciliations), stopMemory()
	var err error
	f.writes, err = audit.Read(r.ctx, r.env.Cluster, audit.By(r.env.Operator.User()), audit.Writes(), audit.Budgeted(), audit.InNamespace(namespace.Name))
	must(r.B, err)
	f.launched = lastJob(f.writes).Sub(began)
	must(r.B, r.env.Client.Delete(r.ctx, namespace))
	r.waitGone(namespace)
	return f
}

// until polls a condition.
func (r *runner) until(done func() bool) {
	must(r.B, wait.PollUntilContextCancel(r.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return done(), nil }))
}

// readyRanks is the number of ranks that the FluxSetups of a namespace report to be ready.
func (r *runner) readyRanks(namespace string) int {
	var setups v1alpha1.FluxSetupList
	must(r.B, r.env.Client.List(r.ctx, &setups, client.InNamespace(namespace)))
	n := 0
	for _, setup := range setups.Items {
		n += int(setup.Status.ReadyRanks)
	}
	return n
}

// waitQuiet waits until all components have settled: two seconds without a write.
func (r *runner) waitQuiet() {
	must(r.B, wait.PollUntilContextCancel(r.ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		leases := audit.Resource("coordination.k8s.io", "leases")
		nodes := audit.Resource("", "nodes")
		events, err := audit.Read(ctx, r.env.Cluster, audit.Writes(), audit.Not(leases), audit.Not(nodes), audit.Since(time.Now().Add(-2*time.Second)))
		return len(events) == 0, err
	}))
}

// waitGone waits until a namespace is deleted, so that its pods need no room any more.
func (r *runner) waitGone(namespace *corev1.Namespace) {
	must(r.B, wait.PollUntilContextCancel(r.ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := r.env.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err != nil, client.IgnoreNotFound(err)
	}))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
