// Package bench measures what the operator costs: how fast it handles a herd of Lolcows, with how many
// requests and how much memory, beside a bare client that applies the same children. `make stage-2
// bench` runs it, on the embedded cluster: nothing is asserted, all figures are printed.
package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/operator"
)

const (
	bareOwner = "bare-client"
	limit     = 20 * time.Minute
)

var (
	// herd is the number of Lolcows.
	herd = number("BENCH_LOLCOWS", 1000)
	// concurrency is the operator's --max-concurrent-reconciles, and the bare client's goroutines.
	concurrency = number("BENCH_CONCURRENCY", 4)
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

func BenchmarkHerd(b *testing.B) {
	// Also where an engine answers: the figures are of an operator without containers beside it.
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	env, err := e2e.Setup(ctx, os.Stdout, e2e.Stage{
		Name:         "02-lolcow-bench",
		Dir:          "../../..",
		Images:       map[string]string{"controller": "manager", "lolcow": "lolcow"},
		AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		OperatorArgs: []string{fmt.Sprintf("--max-concurrent-reconciles=%d", concurrency)},
	})
	must(b, err)
	defer func() { must(b, env.Close(context.WithoutCancel(ctx))) }()
	n := herd
	must(b, env.Operator.Stop(ctx))

	bare := measureBare(ctx, b, env, n)
	herded, peak := measureOperator(ctx, b, env, n)
	report(b, n, bare, herded, peak)
}

// measureBare applies the children of n Lolcows with a client that does nothing else. It has the rights
// of the operator, no more: what the API server spends on checking them is part of every request.
func measureBare(ctx context.Context, b *testing.B, env *e2e.Env, n int) []audit.Event {
	namespace := makeHerd(ctx, b, env, "bare-", n)
	owners := make(map[string]types.UID, n)
	var lolcows v1alpha1.LolcowList
	must(b, env.Client.List(ctx, &lolcows, client.InNamespace(namespace)))
	for _, lolcow := range lolcows.Items {
		owners[lolcow.Name] = lolcow.UID
	}
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: env.Operator.User()}
	c, err := client.New(config, client.Options{})
	must(b, err)

	waitQuiet(ctx, b, env)
	inParallel(b, n, func(i int) error {
		deployment, service := children(namespace, name(i), owners[name(i)], env.Images["lolcow"])
		if err := c.Apply(ctx, deployment, client.FieldOwner(bareOwner)); err != nil {
			return err
		}
		return c.Apply(ctx, service, client.FieldOwner(bareOwner))
	})
	events, err := audit.Read(ctx, env.Cluster, audit.Writes(), audit.InNamespace(namespace), func(e *audit.Event) bool {
		return e.ImpersonatedUser != nil && e.ImpersonatedUser.Username == env.Operator.User()
	})
	must(b, err)
	// The operator must not find these Lolcows when it starts.
	must(b, env.Client.DeleteAllOf(ctx, &v1alpha1.Lolcow{}, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	must(b, wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := env.Client.List(ctx, &lolcows, client.InNamespace(namespace), client.Limit(1))
		return len(lolcows.Items) == 0, err
	}))
	return events
}

// measureOperator has n Lolcows wait for the operator, starts it, and waits until it has applied the
// children and written the status of each. Pods stay Pending, so that nothing but that is measured.
func measureOperator(ctx context.Context, b *testing.B, env *e2e.Env, n int) (requests []audit.Event, peak uint64) {
	namespace := makeHerd(ctx, b, env, "herd-", n)
	waitQuiet(ctx, b, env)
	must(b, env.Operator.Start(ctx))
	proc, err := process.NewProcessWithContext(ctx, int32(env.Operator.(*operator.Process).Pid()))
	must(b, err)
	must(b, wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		memory, err := proc.MemoryInfoWithContext(ctx)
		if err != nil {
			return false, err
		}
		peak = max(peak, memory.RSS)
		var lolcows v1alpha1.LolcowList
		if err := env.Client.List(ctx, &lolcows, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(lolcows.Items, func(l v1alpha1.Lolcow) bool { return l.Status.ObservedGeneration == 0 }), nil
	}))
	events, err := audit.Read(ctx, env.Cluster, audit.By(env.Operator.User()), audit.InNamespace(namespace))
	must(b, err)
	return events, peak
}

// waitQuiet waits until Kubernetes' own controllers are done with what was made before: two seconds
// without a write.
func waitQuiet(ctx context.Context, b *testing.B, env *e2e.Env) {
	must(b, wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		leases := audit.Resource("coordination.k8s.io", "leases")
		nodes := audit.Resource("", "nodes")
		events, err := audit.Read(ctx, env.Cluster, audit.Writes(), audit.Not(leases), audit.Not(nodes), audit.Since(time.Now().Add(-2*time.Second)))
		return len(events) == 0, err
	}))
}

// report prints the figures. The rates are those of the API server's log: from the first write that
// came in to the last that was answered.
func report(b *testing.B, n int, bare, herded []audit.Event, peak uint64) {
	bareRate, rate := float64(n)/window(bare).Seconds(), float64(n)/window(herded).Seconds()
	b.ReportMetric(rate, "lolcows/s")
	b.ReportMetric(bareRate, "bare/s")
	b.ReportMetric(rate/bareRate, "ratio")
	b.ReportMetric(float64(peak)/1e6, "MB-peak")
	b.ReportMetric(0, "ns/op")

	fmt.Printf("\n%d Lolcows, %d at once\n", n, concurrency)
	fmt.Printf("  operator, children applied and status written: %6.1f Lolcows/s\n", rate)
	fmt.Printf("  bare client, the same children applied:        %6.1f Lolcows/s\n", bareRate)
	fmt.Printf("  ratio:                                         %6.2f\n", rate/bareRate)
	fmt.Printf("  the operator's peak memory:                    %6.1f MB\n", float64(peak)/1e6)
	fmt.Printf("  the operator's requests for each Lolcow:\n")
	counts := map[string]int{}
	for _, event := range herded {
		what := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		counts[what]++
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("    %-24s %6.2f\n", what, float64(counts[what])/float64(n))
	}
}

// window is the time from the first request's arrival to the last's answer.
func window(events []audit.Event) time.Duration {
	var first, last time.Time
	for _, event := range events {
		if first.IsZero() || event.RequestReceivedTimestamp.Time.Before(first) {
			first = event.RequestReceivedTimestamp.Time
		}
		if event.StageTimestamp.After(last) {
			last = event.StageTimestamp.Time
		}
	}
	return last.Sub(first)
}

// makeHerd makes n Lolcows in a namespace of their own, whose pods stay Pending.
func makeHerd(ctx context.Context, b *testing.B, env *e2e.Env, prefix string, n int) (namespace string) {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix, Labels: map[string]string{cluster.ManualPodsLabel: "true"},
	}}
	must(b, env.Client.Create(ctx, object))
	inParallel(b, n, func(i int) error {
		return env.Client.Create(ctx, &v1alpha1.Lolcow{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Name, Name: name(i)},
			Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
		})
	})
	return object.Name
}

func name(i int) string { return fmt.Sprintf("cow-%04d", i) }

func inParallel(b *testing.B, n int, do func(i int) error) {
	next := make(chan int)
	errs := make(chan error, n)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
