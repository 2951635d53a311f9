package page

import (
	_ "embed"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
	"example.com/workbook/shared/exercise/manager"
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
	operator  *manager.Operator
	// registry has the metrics of the last process.
	registry *prometheus.Registry
	// stuck is set while no Pods start.
	stuck bool
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
	scheme := newScheme()
	var err error
	c.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	c.must("making a client", err)
	c.bind()
	options := ctrl.Options{Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}}}
	c.operator = manager.New(b, options, func(mgr ctrl.Manager, p *manager.Process) error {
		c.registry = prometheus.NewRegistry()
		return work.Entry(mgr, &session{c.dns, p.Process}, c.registry)
	})
	c.operator.CrashAfter = true
	c.operator.Access = func(access *rest.Config) { access.Impersonate = rest.ImpersonationConfig{UserName: c.account()} }
	return c
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}

// tend starts what has crashed, and the Pods of Deployments.
func (c *cluster) tend() {
	c.operator.Tend()
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
