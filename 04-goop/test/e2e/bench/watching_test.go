package bench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/operator"
)

// watchMemory measures the operator's resident memory until stop is called, which returns the peak.
func (r *runner) watchMemory() (stop func() (peak uint64)) {
	proc, err := process.NewProcessWithContext(r.ctx, int32(r.env.Operator.(*operator.Process).Pid()))
	must(r.B, err)
	ctx, cancel := context.WithCancel(r.ctx)
	result := make(chan uint64, 1)
	go func() {
		var peak uint64
		defer func() { result <- peak }()
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			if memory, err := proc.MemoryInfoWithContext(ctx); err == nil {
				peak = max(peak, memory.RSS)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { cancel(); return <-result }
}

var reconciles = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{.*\} (\S+)$`)

// cpu returns the CPU time of every process so far.
func (r *runner) cpu() bench.CPU {
	used, err := bench.CPUOf(r.ctx, r.env.Cluster.Kubeconfig(), r.env.Operator.(*operator.Process).Pid())
	must(r.B, err)
	return used
}

// reconciliations returns the operator's number of reconciliations so far.
func (r *runner) reconciliations() (total float64) {
	must(r.B, wait.PollUntilContextCancel(r.ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		status, body, err := r.env.Operator.Metrics(ctx, r.token)
		total = 0
		for _, found := range reconciles.FindAllStringSubmatch(body, -1) {
			n, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				return false, fmt.Errorf("reading the metrics: %w", err)
			}
			total += n
		}
		// At first the authorizer may not have the binding yet.
		return status == 200, err
	}))
	return total
}

// metricsToken returns the token of an account that may read the operator's metrics. The account is deleted with the
// cluster.
func metricsToken(ctx context.Context, b *testing.B, env *e2e.Env) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.Operator.Namespace(), GenerateName: "bench-"}}
	must(b, env.Client.Create(ctx, account))
	must(b, env.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "goop-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
	token, err := env.Token(ctx, account.Namespace, account.Name)
	must(b, err)
	return token
}
