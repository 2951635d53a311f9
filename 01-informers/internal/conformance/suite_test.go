package conformance

import (
	"context"
	"flag"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/testserver"
)

var implementation = flag.String("implementation", "", "which implementation to test: raw or managed. Default: both")

func TestMain(m *testing.M) {
	// These tests wait far more than they work. The command line still has the last word.
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

// TestConformance lives through all scenarios at once with one operator that serves all namespaces. It is
// not parallel itself: another operator would serve them too.
func TestConformance(t *testing.T) {
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			running := inprocess.Start(t, inprocess.NewAccount(t), inprocess.Settings{Implementation: implementation})
			t.Run("scenarios", func(t *testing.T) {
				for _, scenario := range slices.Concat(Scenarios(), ByHand()) {
					t.Run(scenario.Name, func(t *testing.T) {
						t.Parallel()
						scenario.Run(t.Context(), NewWithT(t), newWorld(t))
					})
				}
			})
			running.Stop(t)
		})
	}
}

// newWorld is a namespace of the test's own on a server where no controller of Kubernetes runs.
func newWorld(t *testing.T) *World {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(testserver.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &World{
		Client:    c,
		Namespace: testserver.Namespace(t),
		RollOut:   func(ctx context.Context, key client.ObjectKey) error { return rollOut(ctx, c, key) },
		Soon:      30 * time.Second,
		AtRest:    500 * time.Millisecond,
	}
}

// rollOut plays the Deployment controller and the kubelets: all replicas are updated and available.
func rollOut(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, key, &deployment); err != nil {
		return err
	}
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas,
		UpdatedReplicas:    replicas,
		ReadyReplicas:      replicas,
		AvailableReplicas:  replicas,
	}
	return c.Status().Update(ctx, &deployment)
}

// trial is a story in which the test itself starts and ends operators, confined to its namespace.
type trial struct {
	*story
	t              *testing.T
	implementation string
	account        *inprocess.Account
	// wrapFirst, if set, is put before the transport of the first of two replicas.
	wrapFirst func(http.RoundTripper) http.RoundTripper
}

func newTrial(t *testing.T, implementation string) *trial {
	t.Helper()
	return &trial{
		story: &story{Gomega: NewWithT(t), World: newWorld(t), ctx: t.Context()},
		t:     t, implementation: implementation, account: inprocess.NewAccount(t),
	}
}

// start starts an operator.
func (w *trial) start(options ...func(*operator.Options)) *inprocess.Running {
	w.t.Helper()
	return inprocess.Start(w.t, w.account, inprocess.Settings{
		Implementation: w.implementation,
		Namespace:      w.Namespace,
		Options: func(o *operator.Options) {
			for _, set := range options {
				set(o)
			}
		},
	})
}

// writes returns what the operators wrote in the test's namespace: all but the leases.
func (w *trial) writes() []inprocess.Write { return w.account.Writes(w.t, w.Namespace) }

// count counts writes by verb, resource and the server's answer.
func count(writes []inprocess.Write) map[string]int {
	counts := map[string]int{}
	for _, write := range writes {
		write.Namespace, write.Name = "", ""
		counts[write.String()]++
	}
	return counts
}
