package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/e2e"
)

// bareOwner is the field owner of the bare client.
const bareOwner = "bare-client"

var (
	// foos is the number of Foos that each writer gets in a round.
	foos   = bench.Number("BENCH_FOOS", 300)
	rounds = bench.Number("BENCH_ROUNDS", 3)
	// many is the number of Foos of the steady state.
	many = bench.Number("BENCH_MANY", 10_000)
	// concurrency is the number of Foos that each writer reconciles at once.
	concurrency = bench.Number("BENCH_CONCURRENCY", 4)
)

// implementations are those of the operator, and overlays the folders of config/ that deploy them.
var (
	implementations = []string{"managed", "raw"}
	overlays        = map[string]string{"managed": deploy.DefaultOverlay, "raw": "raw"}
)

// stage is what the benchmarks of the operator set up.
func stage(implementation string) e2e.Stage {
	return e2e.Stage{
		Name:         "foo-bench",
		Dir:          "../../..",
		Overlay:      overlays[implementation],
		Images:       map[string]string{"controller": "manager", "foo": "foo"},
		AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		OperatorArgs: []string{fmt.Sprintf("--max-concurrent-reconciles=%d", concurrency)},
	}
}

// runner creates Foos, and measures the writers that reconcile them.
type runner struct{ *bench.Bench }

// herd is how they are compared. Pods stay Pending, so that nothing but the dependents and the status is measured.
func (r runner) herd() bench.Herd {
	return bench.Herd{
		Objects: "Foos", N: foos, Rounds: rounds, AtOnce: concurrency,
		Create: func(ctx context.Context, namespace string, i int) error {
			name := fmt.Sprintf("foo-%05d", i)
			return r.Client.Create(ctx, &v1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       v1alpha1.FooSpec{DeploymentName: name},
			})
		},
		Missing: func(namespace string) bool {
			var all v1alpha1.FooList
			r.Must(r.Client.List(r.Ctx, &all, client.InNamespace(namespace)))
			return slices.ContainsFunc(all.Items, func(one v1alpha1.Foo) bool { return one.Status.ObservedGeneration == 0 })
		},
		Counts: func(e *audit.Event) bool { return e.ObjectRef.Subresource == "status" },
	}
}

// BenchmarkHerd compares each implementation of the operator with a bare client.
func BenchmarkHerd(b *testing.B) {
	for _, implementation := range implementations {
		b.Run(implementation, func(b *testing.B) {
			r := runner{bench.Start(b, time.Hour, stage(implementation))}
			h := r.herd()
			h.Writers = []bench.Writer{r.OperatorWriter(), r.bareWriter()}
			r.Compare(h)
		})
	}
}

// BenchmarkSteadyState measures each implementation of the operator with many Foos in steady state.
func BenchmarkSteadyState(b *testing.B) {
	for _, implementation := range implementations {
		b.Run(implementation, func(b *testing.B) {
			r := runner{bench.Start(b, time.Hour, stage(implementation))}
			r.WaitDone(r.herd(), r.Fill(r.herd(), many))
			r.Steady(many, "Foos", many).Report(os.Stdout)
			b.ReportMetric(0, "ns/op")
		})
	}
}

// bareWriter makes the two writes of each Foo with a client that does nothing else: it reads nothing and watches nothing.
// It is the operator's ServiceAccount: what the API server spends on checking permissions is part of every request.
func (r runner) bareWriter() bench.Writer {
	c, err := client.New(r.ConfigOf(r.Operator().ServiceAccount()), client.Options{Scheme: r.Client.Scheme(), Mapper: r.Client.RESTMapper()})
	r.Must(err)
	return bench.Writer{Name: "bare client", User: r.Operator().User(), Start: func(namespace string) bench.Running {
		var all v1alpha1.FooList
		r.Must(r.Client.List(r.Ctx, &all, client.InNamespace(namespace)))
		return bench.Running{Pid: bench.Here(), Work: func() {
			r.InParallel(len(all.Items), concurrency, func(ctx context.Context, i int) error {
				return writeBare(ctx, c, &all.Items[i], r.Env.Images["foo"])
			})
		}, Stop: func() {}}
	}}
}

// writeBare applies the Deployment of one Foo and writes its status.
func writeBare(ctx context.Context, c client.Client, f *v1alpha1.Foo, image string) error {
	if err := c.Apply(ctx, foo.Deployment(f, image), client.FieldOwner(bareOwner)); err != nil {
		return err
	}
	before := f.DeepCopy()
	f.Status = foo.Status(f, foo.Observation{Deployment: &appsv1.Deployment{}}, metav1.Now())
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return c.Status().Patch(ctx, f, patch, client.FieldOwner(bareOwner))
}
