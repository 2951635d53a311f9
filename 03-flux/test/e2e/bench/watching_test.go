package bench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/e2e"
)

// podWatch counts the events of the pods of a namespace, which the operator receives too.
type podWatch struct {
	mu             sync.Mutex
	nMade, nEvents int
	lastMade       time.Time
}

// watchPods is an informer, like the operator's: the API server closes a bare watch that does not keep up with many
// events.
func (r *runner) watchPods(namespace string) (pods *podWatch, stop func()) {
	clients, err := kubernetes.NewForConfig(r.env.Config)
	must(r.B, err)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	pods = &podWatch{}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { pods.add(true) },
		UpdateFunc: func(any, any) { pods.add(false) },
		DeleteFunc: func(any) { pods.add(false) },
	})
	must(r.B, err)
	ctx, stop := context.WithCancel(r.ctx)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return pods, stop
}

func (p *podWatch) add(isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nEvents++
	if isNew {
		p.nMade++
		p.lastMade = time.Now()
	}
}

func (p *podWatch) made() int { p.mu.Lock(); defer p.mu.Unlock(); return p.nMade }

func (p *podWatch) events() int { p.mu.Lock(); defer p.mu.Unlock(); return p.nEvents }

func (p *podWatch) last() time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.lastMade }

// reconciliations are the numbers of reconciliations, by the controller's name.
type reconciliations map[string]float64

func (p reconciliations) minus(earlier reconciliations) reconciliations {
	difference := reconciliations{}
	for controller, n := range p {
		difference[controller] = n - earlier[controller]
	}
	return difference
}

var reconciles = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{.*controller="([^"]+)".*\} (\S+)$`)

// reconciliations reads the operator's metrics.
func (r *runner) reconciliations() reconciliations {
	counted := reconciliations{}
	must(r.B, wait.PollUntilContextCancel(r.ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		status, body, err := r.env.Operator.Metrics(ctx, r.token)
		for _, found := range reconciles.FindAllStringSubmatch(body, -1) {
			n, err := strconv.ParseFloat(found[2], 64)
			if err != nil {
				return false, fmt.Errorf("reading the metrics: %w", err)
			}
			counted[found[1]] += n
		}
		// At first the authorizer may not have observed the binding yet.
		return status == 200, err
	}))
	return counted
}

// metricsToken is the token of an account that may read the operator's metrics. It is deleted with the cluster.
func metricsToken(ctx context.Context, b *testing.B, env *e2e.Env) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.Operator.Namespace(), GenerateName: "bench-"}}
	must(b, env.Client.Create(ctx, account))
	must(b, env.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "flux-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
	token, err := env.Token(ctx, account.Namespace, account.Name)
	must(b, err)
	return token
}
