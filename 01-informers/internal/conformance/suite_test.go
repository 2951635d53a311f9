package conformance

import (
	"context"
	"flag"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/testserver"
)

var implementation = flag.String("implementation", "", "which implementation to test: raw or managed. Default: both")

func TestMain(m *testing.M) {
	// These tests wait most of the time. The flag on the command line overrides this.
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	testserver.Main(m)
}

// implementations returns those that the flag names.
func implementations(t *testing.T) []string {
	t.Helper()
	names := inprocess.Names()
	if *implementation == "" {
		return names
	}
	if !slices.Contains(names, *implementation) {
		t.Fatalf("there is no implementation %q, only %v", *implementation, names)
	}
	return []string{*implementation}
}

// TestConformance runs all scenarios in parallel with one operator that reconciles all namespaces. It is not parallel itself:
// another operator would reconcile them too.
func TestConformance(t *testing.T) {
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			running := inprocess.Start(t, inprocess.NewAccount(t), inprocess.Settings{Implementation: implementation})
			t.Run("scenarios", func(t *testing.T) {
				for _, scenario := range slices.Concat(Scenarios(), byHandScenarios) {
					t.Run(scenario.Name, func(t *testing.T) {
						t.Parallel()
						scenario.Run(t.Context(), NewWithT(t), newEnv(t))
					})
				}
			})
			running.Stop(t)
		})
	}
}

// newEnv returns an environment on an API server without any of Kubernetes' controllers.
func newEnv(t *testing.T) *Env {
	t.Helper()
	c := inprocess.Client(t)
	return &Env{
		Client:      c,
		Namespace:   testserver.Namespace(t),
		RollOut:     func(ctx context.Context, key client.ObjectKey) error { return inprocess.RollOut(ctx, c, key) },
		Soon:        30 * time.Second,
		SteadyState: 500 * time.Millisecond,
		Interval:    20 * time.Millisecond,
	}
}

// operatorEnv is a run in which the test itself starts and stops operators, confined to its namespace.
type operatorEnv struct {
	*scenarioRun
	t              *testing.T
	implementation string
	account        *inprocess.Account
}

// forEach runs a test for each implementation, in parallel.
func forEach(t *testing.T, test func(e *operatorEnv)) {
	t.Helper()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			test(&operatorEnv{
				scenarioRun: &scenarioRun{Gomega: NewWithT(t), Env: newEnv(t), ctx: t.Context()},
				t:           t, implementation: implementation, account: inprocess.NewAccount(t),
			})
		})
	}
}

// start starts an operator.
func (e *operatorEnv) start(options ...func(*operator.Options)) *inprocess.Running {
	e.t.Helper()
	return e.startWith(nil, options...)
}

// startWith starts an operator with a wrapper of its transport, or none.
func (e *operatorEnv) startWith(wrap func(http.RoundTripper) http.RoundTripper, options ...func(*operator.Options)) *inprocess.Running {
	e.t.Helper()
	return inprocess.Start(e.t, e.account, inprocess.Settings{
		Implementation: e.implementation, Namespace: e.Namespace,
		Config: func(config *rest.Config) { config.Wrap(wrap) },
		Options: func(o *operator.Options) {
			for _, set := range options {
				set(o)
			}
		},
	})
}

// writes returns what the operators wrote in the namespace of the test, without the leases.
func (e *operatorEnv) writes() []inprocess.Write { return e.account.Writes(e.t, e.Namespace) }

// count counts writes by verb, resource and the code of the response.
func count(writes []inprocess.Write) map[string]int {
	counts := map[string]int{}
	for _, write := range writes {
		write.Namespace, write.Name = "", ""
		counts[write.String()]++
	}
	return counts
}
