// Package bench measures what the operator costs: how many Lolcows a second it takes care of, with how many requests, how
// much CPU time and memory, beside a bare client that makes the same writes and beside the loop that scaffolds teach; what
// it costs in steady state with many Lolcows; and which of its writes, and which of their fields, cost the API server most.
// `make stage-2 bench` runs it, on the embedded cluster: nothing is asserted, all figures are printed.
package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/e2e"
)

const limit = 50 * time.Minute

var (
	// lolcows is the number of Lolcows that each writer gets in a round.
	lolcows = bench.Number("BENCH_LOLCOWS", 300)
	rounds  = bench.Number("BENCH_ROUNDS", 3)
	// many is the number of Lolcows of the steady state.
	many = bench.Number("BENCH_MANY", 10_000)
	// concurrency is the number of Lolcows that each writer takes care of at once.
	concurrency = bench.Number("BENCH_CONCURRENCY", 4)
)

// stage is what the benchmarks set up.
var stage = e2e.Stage{
	Name:         "02-lolcow-bench",
	Dir:          "../../..",
	Images:       map[string]string{"controller": "manager", "lolcow": "lolcow"},
	AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	OperatorArgs: []string{fmt.Sprintf("--max-concurrent-reconciles=%d", concurrency)},
}

// TestMain runs the benchmarks, or is the process that BenchmarkHerd starts.
func TestMain(m *testing.M) {
	if os.Getenv(scaffoldVariable) == "" {
		os.Exit(m.Run())
	}
	if err := scaffold(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runner makes Lolcows, and measures those who take care of them.
type runner struct{ *bench.Bench }

// herd is how they are compared. Pods stay Pending, so that nothing but the dependents and the status is measured.
func (r runner) herd() bench.Herd {
	return bench.Herd{
		Objects: "Lolcows", N: lolcows, Rounds: rounds, AtOnce: concurrency,
		Create: func(ctx context.Context, namespace string, i int) error {
			return r.Client.Create(ctx, &v1alpha1.Lolcow{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("cow-%05d", i)},
				Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
			})
		},
		Missing: func(namespace string) bool {
			var all v1alpha1.LolcowList
			r.Must(r.Client.List(r.Ctx, &all, client.InNamespace(namespace)))
			return slices.ContainsFunc(all.Items, func(one v1alpha1.Lolcow) bool { return one.Status.ObservedGeneration == 0 })
		},
		Counts: func(e *audit.Event) bool { return e.ObjectRef.Subresource == "status" },
	}
}

// BenchmarkHerd compares the operator with a bare client and with the loop that scaffolds teach.
func BenchmarkHerd(b *testing.B) {
	r := runner{bench.Start(b, limit, stage)}
	h := r.herd()
	h.Writers = []bench.Writer{r.OperatorWriter(), r.bareWriter(), r.scaffoldWriter()}
	r.Compare(h)
}

// BenchmarkSteadyState has the operator take care of many Lolcows, and then of nothing.
func BenchmarkSteadyState(b *testing.B) {
	r := runner{bench.Start(b, limit, stage)}
	r.WaitDone(r.herd(), r.Fill(r.herd(), many))
	r.Steady(many, "Lolcows", many).Report(os.Stdout)
	b.ReportMetric(0, "ns/op")
}
