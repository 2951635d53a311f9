package page

import (
	"context"
	_ "embed"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

//go:embed crds/pages.yaml
var crd []byte

// patience is also for requests that fail some times, with a pause after each.
const patience = 10 * time.Second

// cluster is a namespace with Pages, the DNS service, and the processes of the operator.
type cluster struct {
	b         *check.B
	work      check.Work[Entry]
	namespace string
	client    client.Client
	dns       *service
	operators []*operator
	// crashWrite is the number of the write after which the first process crashes, if it is not 0.
	crashWrite int
	crashed    bool
	// stuck is set while no Pods start.
	stuck bool

	mu   sync.Mutex
	hook func(kube.Request) error
}

// operator is a process.
type operator struct {
	wire     *kube.Wire
	process  *kube.Process
	registry *prometheus.Registry
	cancel   context.CancelFunc
	stopped  <-chan struct{}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), pages.AddToScheme(scheme)
	return scheme
}

func newCluster(b *check.B, work check.Work[Entry]) *cluster {
	kube.InstallCRD(b, crd)
	c := &cluster{b: b, work: work, namespace: kube.Namespace(b), dns: newService(b)}
	var err error
	c.client, err = client.New(kube.Config(b), client.Options{Scheme: newScheme()})
	c.must("making a client", err)
	// A manager whose discovery is too early tries again only after ten seconds.
	b.Eventually(patience, func() string {
		kinds, err := kube.Client(b).Discovery().ServerResourcesForGroupVersion(pages.SchemeGroupVersion.String())
		if err != nil || len(kinds.APIResources) < 2 {
			return "the API server does not list the kind"
		}
		return ""
	})
	c.bind()
	return c
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}

// start starts a process of the operator, with the permissions in role.yaml.
func (c *cluster) start() *operator {
	c.b.Event("the operator starts")
	ctrl.SetLogger(logr.Discard())
	o := &operator{wire: kube.NewWire(c.b), process: kube.NewProcess(c.b), registry: prometheus.NewRegistry()}
	if c.crashWrite > 0 && !c.crashed {
		o.process.CrashAt(c.crashWrite, true)
	}
	o.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if err := c.before(request); err != nil && !o.process.Dead() {
			return nil, err
		}
		return o.process.Before(request, r)
	})
	access := o.wire.Config()
	access.Impersonate = rest.ImpersonationConfig{UserName: c.account()}
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:     newScheme(),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
		Metrics:    server.Options{BindAddress: "0"},
		Logger:     logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true)}, // there are several managers
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	c.must("making a manager", err)
	if err := c.work.Entry(mgr, &session{c.dns, o.process}, o.registry); err != nil {
		c.b.Fatalf("Setup returned an error: %v", err)
	}
	ctx, cancel := context.WithCancel(c.b.Context())
	o.cancel = cancel
	o.stopped = c.b.Go(func() {
		err := o.process.Run(func(process context.Context) error {
			both, end := context.WithCancel(process)
			defer end()
			defer context.AfterFunc(ctx, end)()
			return mgr.Start(both)
		})
		if err != nil && ctx.Err() == nil && !o.process.Crashed() {
			c.b.Errorf("the manager returned an error: %v", err)
		}
	})
	c.operators = append(c.operators, o)
	c.b.Cleanup(func() { o.end(c.b) })
	return o
}

// end waits for the end of a process.
func (o *operator) end(b *check.B) {
	o.cancel()
	select {
	case <-o.stopped:
	case <-time.After(b.Patience(patience)):
		b.Errorf("the context of the manager has ended, and a call of Reconcile does not return")
	}
}

// stop stops all processes.
func (c *cluster) stop() {
	c.b.Event("the operator stops")
	for _, o := range c.operators {
		o.end(c.b)
	}
	c.operators = nil
}

func (c *cluster) restart() *operator {
	c.stop()
	return c.start()
}

// intercept has f called for each request of the operator, from now on. Its error is what comes of the request.
func (c *cluster) intercept(f func(kube.Request) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = f
}

func (c *cluster) before(request kube.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hook == nil {
		return nil
	}
	return c.hook(request)
}

// tend starts what has crashed, and the Pods of Deployments.
func (c *cluster) tend() {
	for i, o := range c.operators {
		if o.process.Crashed() {
			c.crashed = true
			o.end(c.b)
			c.operators = append(c.operators[:i], c.operators[i+1:]...)
			c.start()
			break
		}
	}
	if !c.stuck {
		c.rollOut()
	}
}

// eventually waits for something. Meanwhile the cluster is tended.
func (c *cluster) eventually(condition func() string) {
	c.b.Eventually(patience, func() string {
		c.tend()
		return condition()
	})
}
