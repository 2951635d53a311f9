package bench

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/cluster"
)

const (
	// atOnce is how many requests the nodes together send at a time.
	atOnce = 16
	// renewEvery is how often a node says that it is there: seldom enough to cost little, often enough to be believed.
	renewEvery = 20 * time.Second
	// benchLabel is on all nodes of the benchmark, and on no other.
	benchLabel = "goop.example.com/bench"
)

// addNodes makes nodes until there are n, and waits until each takes pods. From then on until the end they say that they
// are there.
func (r *runner) addNodes(n int) {
	must(r.B, r.each(int(r.registered.Load()), n, func(ctx context.Context, i int) error {
		if err := r.register(ctx, i); err != nil {
			return err
		}
		r.registered.Add(1)
		return nil
	}))
	r.until("the nodes to be ready", func() bool {
		var list corev1.NodeList
		must(r.B, r.client.List(r.ctx, &list, client.HasLabels{benchLabel}))
		for i := range list.Items {
			if len(list.Items[i].Spec.Taints) > 0 {
				return false
			}
		}
		return len(list.Items) == n
	})
}

// each does something for the nodes from first up to the one before last, atOnce at a time.
func (r *runner) each(first, last int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(r.ctx)
	group.SetLimit(atOnce)
	for i := first; i < last; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// keepAlive renews the leases of nodes, until the end. A node that is not heard of for 50 seconds is taken for lost.
func (r *runner) keepAlive() {
	for tick := time.NewTicker(renewEvery); ; {
		select {
		case <-r.ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			_ = r.each(0, int(r.registered.Load()), func(ctx context.Context, i int) error {
				r.renew(ctx, i)
				return nil
			})
		}
	}
}

func (r *runner) register(ctx context.Context, i int) error {
	_, err := r.machinery.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(nodeName(i)), LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro())},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return r.client.Create(ctx, node(i))
}

// renew may fail: the next time is soon.
func (r *runner) renew(ctx context.Context, i int) {
	body := encode(map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
	_, _ = r.machinery.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, nodeName(i), types.MergePatchType, body, metav1.PatchOptions{})
}

// node is one as its kubelet would register it.
func node(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			cluster.ManualNodeLabel: "true", benchLabel: "true", corev1.LabelHostname: nodeName(i), corev1.LabelOSStable: "linux",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
		},
	}
}
