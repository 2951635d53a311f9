package claim

import (
	_ "embed"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
	"example.com/workbook/shared/exercise/manager"
)

//go:embed crds/databaseclaims.yaml
var claimCRD []byte

//go:embed crds/databases.yaml
var databaseCRD []byte

// patience is also for requests that fail some times, with a pause after each.
const patience = 10 * time.Second

// cluster is a namespace with claims, the cloud, and the processes of the operator.
type cluster struct {
	b         *check.B
	namespace string
	client    client.Client
	cloud     *cloud
	defaults  databases.Defaults
	operator  *manager.Operator
	// late is set while the garbage collector does nothing.
	late bool
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), databases.AddToScheme(scheme)
	return scheme
}

func newCluster(b *check.B, entry Entry) *cluster {
	kube.InstallCRD(b, claimCRD)
	kube.InstallCRD(b, databaseCRD)
	c := &cluster{b: b, namespace: kube.Namespace(b), cloud: newCloud(b), defaults: older}
	scheme := newScheme()
	var err error
	c.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	c.must("making a client", err)
	options := ctrl.Options{Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}}}
	c.operator = manager.New(b, options, func(mgr ctrl.Manager, p *manager.Process) error {
		b.Event("its defaults are %d GB and %s", c.defaults.SizeGB, c.defaults.Class)
		return entry(mgr, &session{c.cloud, p.Process}, c.defaults)
	})
	return c
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}

// tend starts what has crashed, and collects garbage.
func (c *cluster) tend() {
	c.operator.Tend()
	if !c.late {
		c.collect()
	}
}

// eventually waits for something. Meanwhile the cluster is tended.
func (c *cluster) eventually(condition func() string) {
	c.b.Eventually(patience, func() string {
		c.tend()
		return condition()
	})
}
