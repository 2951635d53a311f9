// Package bench has what the benchmarks of all stages share: an operator on an embedded cluster of its own, what its work
// costs in requests, CPU time and memory, and how the figures are printed.
package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/operator"
)

// nodePorts is a range with room for ten thousand Services of the type NodePort: the default has room for 2,768.
const nodePorts = "20000-32767"

// Bench is a benchmark with the operator of a stage.
type Bench struct {
	*testing.B
	Ctx context.Context
	Env *e2e.Env
	// Config and Client act as the cluster's administrator, with no limit on requests a second.
	Config *rest.Config
	Client client.Client

	clients kubernetes.Interface
	token   string
}

// Number is a whole number above zero from the environment.
func Number(variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s=%s: give a whole number above zero", variable, text))
	}
	return n
}

// Start sets up a stage on an embedded cluster of its own, which ends with the benchmark: also where an engine answers,
// because the figures are of an operator without containers beside it. The benchmark may take as long as limit.
func Start(b *testing.B, limit time.Duration, stage e2e.Stage) *Bench {
	b.Setenv("CLUSTER_NAME", config.ClusterName()+"-bench")
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	b.Setenv(cluster.NodePortsVariable, nodePorts)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	b.Cleanup(cancel)
	env, err := e2e.Setup(ctx, os.Stdout, stage)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := env.Close(context.WithoutCancel(ctx)); err != nil {
			b.Error(err)
		}
	})
	bench := &Bench{B: b, Ctx: ctx, Env: env, Config: rest.CopyConfig(env.Config)}
	bench.Config.QPS = -1
	bench.Client, err = client.New(bench.Config, client.Options{Scheme: env.Client.Scheme()})
	bench.Must(err)
	bench.clients, err = kubernetes.NewForConfig(bench.Config)
	bench.Must(err)
	bench.token = bench.metricsToken()
	return bench
}

// Must ends the benchmark if there is an error.
func (b *Bench) Must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// Operator is the stage's operator, a process of this machine.
func (b *Bench) Operator() *operator.Process { return b.Env.Operator.(*operator.Process) }

// Namespace creates a namespace in which no pod is simulated: those that are scheduled stay Pending.
func (b *Bench) Namespace() string {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{cluster.ManualPodsLabel: "true"},
	}}
	b.Must(b.Client.Create(b.Ctx, namespace))
	return namespace.Name
}

// Remove deletes a namespace with all that is in it, and waits until it is gone: it must not slow down what comes next.
func (b *Bench) Remove(namespace string) {
	b.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	b.Must(b.Client.Delete(b.Ctx, object))
	b.Until("the namespace to be gone", time.Second, func() bool {
		err := b.Client.Get(b.Ctx, client.ObjectKeyFromObject(object), object)
		b.Must(client.IgnoreNotFound(err))
		return err != nil
	})
}

// Until waits until something is done, and asks at intervals.
func (b *Bench) Until(what string, interval time.Duration, done func() bool) {
	b.Helper()
	err := wait.PollUntilContextCancel(b.Ctx, interval, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		b.Fatalf("waiting for %s: %v", what, err)
	}
}

// InParallel does n things, so many at once.
func (b *Bench) InParallel(n, atOnce int, do func(ctx context.Context, i int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	b.Must(group.Wait())
}

// ConfigOf is the administrator's configuration with the token of a ServiceAccount in the operator's namespace.
func (b *Bench) ConfigOf(serviceAccount string) *rest.Config {
	b.Helper()
	token, err := b.Env.Token(b.Ctx, b.Operator().Namespace(), serviceAccount)
	b.Must(err)
	config := rest.AnonymousClientConfig(b.Config)
	config.BearerToken = token
	return config
}

// Account creates a ServiceAccount in the operator's namespace that may do what the rules allow, everywhere.
func (b *Bench) Account(rules ...rbacv1.PolicyRule) (name string) {
	b.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.Operator().Namespace(), GenerateName: "bench-"}}
	b.Must(b.Client.Create(b.Ctx, account))
	b.Must(b.Client.Create(b.Ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account.Name}, Rules: rules}))
	b.Must(b.Client.Create(b.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
	return account.Name
}

// User is the name that the API server knows a ServiceAccount of the operator's namespace by.
func (b *Bench) User(serviceAccount string) string {
	return "system:serviceaccount:" + b.Operator().Namespace() + ":" + serviceAccount
}

// metricsToken is of an account that may read the operator's metrics.
func (b *Bench) metricsToken() string {
	b.Helper()
	return b.ConfigOf(b.Account(rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})).BearerToken
}
