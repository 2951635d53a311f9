package bench

import (
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/cluster"
)

const (
	// atOnce is how many requests for nodes and pods are sent at the same time.
	atOnce = 16
	// benchLabel is on all nodes of the benchmark only.
	benchLabel = "goop.example.com/bench"
)

// addNodes creates nodes until there are n, and waits until each is schedulable. They renew no leases: the node
// controller of this cluster treats a node as ready for longer than the benchmark takes.
func (r *runner) addNodes(n int) {
	group, ctx := errgroup.WithContext(r.ctx)
	group.SetLimit(atOnce)
	for ; r.nodes < n; r.nodes++ {
		object := node(r.nodes)
		group.Go(func() error { return r.client.Create(ctx, object) })
	}
	must(r.B, group.Wait())
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

// node returns a node as its kubelet would register it.
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
