// Package bench measures what the operator costs: how long it takes until the pods of many Fluxes, and those of
// one large one, are made and told to be ready, with how many writes, how much memory and how many passes. `make
// stage-3 bench` runs it, on the embedded cluster, and plays the kubelets: nothing is asserted, all figures are
// printed.
package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
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
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/e2e"
)

const limit = 20 * time.Minute

var (
	// atOnce is the number of Fluxes that are made at a time, each of size small, in this many waves.
	atOnce = number("BENCH_FLUXES", 50)
	waves  = number("BENCH_WAVES", 4)
	small  = number("BENCH_SIZE", 4)
	// large is the size of the one large Flux.
	large = number("BENCH_LARGE_SIZE", 1000)
)

// number is a whole number above zero from the environment.
func number(variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s=%s: give a whole number above zero", variable, text))
	}
	return n
}

func BenchmarkFluxes(b *testing.B) {
	// Also where an engine answers: the figures are of an operator without containers beside it.
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	env, err := e2e.Setup(ctx, os.Stdout, e2e.Stage{
		Name:        "03-flux-bench",
		Dir:         "../../..",
		Images:      map[string]string{"controller": "manager"},
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	})
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

// runner makes Fluxes and measures what becomes of them.
type runner struct {
	*testing.B
	ctx   context.Context
	env   *e2e.Env
	token string
}

// measure has the operator make n Fluxes of a size at once, waits until all their pods are there, and then says of
// each that it is ready.
func (r *runner) measure(n, size int) figures {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{cluster.ManualPodsLabel: "true"},
	}}
	must(r.B, r.env.Client.Create(r.ctx, namespace))
	r.waitQuiet()
	stopMemory := r.watchMemory()
	pods, stop := r.watchPods(namespace.Name)
	defer stop()
	passes := r.passes()
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

	playing := time.Now()
	must(r.B, r.makeReady(namespace.Name))
	f.played = time.Since(playing)
	r.until(func() bool { return r.readyRanks(namespace.Name) == f.pods })
	f.ready = time.Since(playing)
	r.waitQuiet()

	f.events, f.passes, f.peak = pods.events(), r.passes().minus(passes), stopMemory()
	var err error
	f.writes, err = audit.Read(r.ctx, r.env.Cluster, audit.By(r.env.Operator.User()), audit.Writes(), audit.Budgeted(), audit.InNamespace(namespace.Name))
	must(r.B, err)
	f.launched = lastJob(f.writes).Sub(began)
	must(r.B, r.env.Client.Delete(r.ctx, namespace))
	r.waitGone(namespace)
	return f
}

// until asks often.
func (r *runner) until(done func() bool) {
	must(r.B, wait.PollUntilContextCancel(r.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return done(), nil }))
}

// readyRanks is how many ranks the FluxSetups of a namespace say to be ready.
func (r *runner) readyRanks(namespace string) int {
	var setups v1alpha1.FluxSetupList
	must(r.B, r.env.Client.List(r.ctx, &setups, client.InNamespace(namespace)))
	n := 0
	for _, setup := range setups.Items {
		n += int(setup.Status.ReadyRanks)
	}
	return n
}

// waitQuiet waits until everybody is done with what was made before: two seconds without a write.
func (r *runner) waitQuiet() {
	must(r.B, wait.PollUntilContextCancel(r.ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		leases := audit.Resource("coordination.k8s.io", "leases")
		nodes := audit.Resource("", "nodes")
		events, err := audit.Read(ctx, r.env.Cluster, audit.Writes(), audit.Not(leases), audit.Not(nodes), audit.Since(time.Now().Add(-2*time.Second)))
		return len(events) == 0, err
	}))
}

// waitGone waits until a namespace is deleted, so that its pods take no room from others.
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
