package patrol

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
	"example.com/workbook/shared/exercise/manager"
)

//go:embed crds/patrols.yaml
var crd []byte

// patience is also for requests that fail some times, with a pause after each.
const patience = 10 * time.Second

// cluster is nodes and Patrols, a namespace with Jobs, and the processes of the operator.
type cluster struct {
	b         *check.B
	namespace string
	client    client.WithWatch
	operator  *manager.Operator
	process   *manager.Process

	// held are nodes where the command does not end yet, and failing those where it fails.
	held, failing map[string]bool
	// runs are the Jobs whose command has begun, and begun the names of their nodes, in order.
	runs  map[types.UID]*run
	begun []string

	mu sync.Mutex
	// cordons are the nodes that administrators have cordoned, and uncordoned those whose cordon they have removed.
	cordons, uncordoned map[string]bool
	// wrong is what must not be and has been seen, between two writes.
	wrong string
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), patrols.AddToScheme(scheme)
	return scheme
}

// newCluster has the nodes a, b and c, and one that no Patrol selects.
func newCluster(b *check.B, programs patrols.Programs) *cluster {
	kube.InstallCRD(b, crd)
	c := &cluster{
		b: b, namespace: kube.Namespace(b), held: map[string]bool{}, failing: map[string]bool{}, runs: map[types.UID]*run{},
		cordons: map[string]bool{}, uncordoned: map[string]bool{},
	}
	scheme := newScheme()
	var err error
	c.client, err = client.NewWithWatch(kube.Config(b), client.Options{Scheme: scheme})
	c.must("making a client", err)
	options := ctrl.Options{Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}}}
	c.operator = manager.New(b, options, func(mgr ctrl.Manager, _ *manager.Process) error { return programs.Setup(mgr, c.namespace) })
	c.intercept(nil)
	b.Cleanup(c.clear)
	for _, name := range []string{"a", "b", "c"} {
		c.node(name, nil)
	}
	c.node("other", func(node *corev1.Node) { node.Labels = nil })
	return c
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}

// start starts a process of the operator.
func (c *cluster) start() { c.process = c.operator.Start() }

// clear deletes what is not in the namespace, and the finalizers.
func (c *cluster) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.b.Context()), c.b.Patience(patience))
	defer cancel()
	var all patrols.PatrolList
	var jobs batchv1.JobList
	err := errors.Join(c.client.List(ctx, &all), c.client.List(ctx, &jobs, client.InNamespace(c.namespace)))
	for i := range all.Items {
		err = errors.Join(err, c.clearOne(ctx, &all.Items[i]))
	}
	for i := range jobs.Items {
		err = errors.Join(err, c.clearOne(ctx, &jobs.Items[i]))
	}
	if err = errors.Join(err, c.client.DeleteAllOf(ctx, &corev1.Node{})); err != nil {
		c.b.Errorf("deleting what is left: %v", err)
	}
}

func (c *cluster) clearOne(ctx context.Context, object client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.client.Patch(ctx, object, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(c.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// intercept has f called for each request of the operator, from now on. Before each write it looks at the nodes: what is wrong for a moment
// is corrected by a later write.
func (c *cluster) intercept(f func(kube.Request) error) {
	c.operator.Intercept(func(request kube.Request) error {
		if kube.Writes(request) {
			c.look()
		}
		if f == nil {
			return nil
		}
		return f(request)
	})
}

// look notes whether two nodes are cordoned for the same Patrol.
func (c *cluster) look() {
	var nodes corev1.NodeList
	if err := c.client.List(c.b.Context(), &nodes); err != nil {
		return // the behaviour has ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count := map[string]int{}
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable && !c.cordons[node.Name] {
			count[node.Annotations[patrols.AnnotationCordoned]]++
		}
	}
	for _, n := range count {
		if n > 1 {
			c.wrong = "a Patrol has two nodes cordoned at the same time"
		}
	}
}

// tend starts what has crashed, and is the Job controller.
func (c *cluster) tend() {
	c.operator.Tend()
	c.work()
	c.mu.Lock()
	wrong := c.wrong
	c.mu.Unlock()
	if wrong != "" {
		c.b.Fatalf("%s", wrong)
	}
}

// eventually waits for something. Meanwhile the cluster is tended.
func (c *cluster) eventually(condition func() string) {
	c.b.Eventually(patience, func() string {
		c.tend()
		time.Sleep(10 * time.Millisecond) // the API server has others to serve
		return condition()
	})
}

// order checks in which order the command has begun on nodes.
func (c *cluster) order(want ...string) {
	if !slices.Equal(c.begun, want) {
		c.b.Fatalf("the command should have begun on %v, and has on %v", want, c.begun)
	}
}
