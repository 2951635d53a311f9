package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/bench"
)

// herd defines how the operator is measured: until each Flux has its Job. Pods stay Pending.
func herd(b *bench.Bench) bench.Herd {
	return bench.Herd{
		Objects: "Fluxes", N: many, Rounds: 1, AtOnce: 4,
		Create: func(ctx context.Context, namespace string, i int) error {
			return b.Client.Create(ctx, &v1alpha1.Flux{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("flux-%05d", i)},
				Spec:       v1alpha1.FluxSpec{Image: "example.com/none", Command: []string{"hostname"}, Size: int32(small)},
			})
		},
		Missing: func(namespace string) bool {
			var fluxes v1alpha1.FluxList
			var jobs batchv1.JobList
			b.Must(b.Client.List(b.Ctx, &fluxes, client.InNamespace(namespace)))
			b.Must(b.Client.List(b.Ctx, &jobs, client.InNamespace(namespace)))
			return len(jobs.Items) < len(fluxes.Items)
		},
		Counts: func(e *audit.Event) bool { return e.Verb == "create" && e.ObjectRef.Resource == "jobs" },
	}
}

// BenchmarkHerd measures the operator alone. There is no measurement of a plain client to compare with, because the
// operator's writes for a Flux depend on each other.
func BenchmarkHerd(b *testing.B) {
	r := bench.Start(b, limit, stage)
	h := herd(r)
	h.Writers = []bench.Writer{r.OperatorWriter()}
	r.Compare(h)
}

// BenchmarkSteadyState measures the operator with many Fluxes that need nothing, and without any.
func BenchmarkSteadyState(b *testing.B) {
	r := bench.Start(b, limit, stage)
	r.WaitDone(herd(r), r.Fill(herd(r), many))
	// Both a Flux and its FluxSetup are reconciled.
	r.Steady(many, "Fluxes", 2*many).Report(os.Stdout)
	b.ReportMetric(0, "ns/op")
}
