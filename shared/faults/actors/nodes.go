package actors

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// Nodes is what keeps nodes: the kubelet of a new one reports it ready, and the controller that taints nodes by their
// conditions taints what is not ready, or unreachable, until it is ready. A story makes a node unreachable by the condition
// Ready=Unknown.
type Nodes struct{}

// Name is that of the controller.
func (Nodes) Name() string { return "node-lifecycle-controller" }

// Act brings one node one step further.
func (Nodes) Act(ctx context.Context, s *faults.State) (bool, error) {
	nodes, err := faults.All[corev1.Node](s)
	if err != nil {
		return false, err
	}
	for _, node := range nodes {
		ready := readyOf(node)
		if ready == "" {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
			return true, s.Client.Status().Update(ctx, node)
		}
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
		})
		switch ready {
		case corev1.ConditionFalse:
			taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		case corev1.ConditionUnknown:
			taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
		}
		if !slices.Equal(node.Spec.Taints, taints) {
			node.Spec.Taints = taints
			return true, s.Client.Update(ctx, node)
		}
	}
	return false, nil
}

// readyOf is the status of a node's condition Ready, empty before its kubelet has reported one.
func readyOf(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}

// Join is the operation that a node joins the cluster. Names of nodes are those of State.ClusterName.
func Join(node string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return s.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.ClusterName(node)}})
	}
}

// Leave is the operation that a node leaves the cluster.
func Leave(node string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return client.IgnoreNotFound(s.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.ClusterName(node)}}))
	}
}

// Report is the operation that a node gets the condition Ready; it is Unknown for one that is unreachable.
func Report(node string, ready corev1.ConditionStatus) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		n, err := faults.Find[corev1.Node](s, s.ClusterName(node))
		if err != nil || n == nil {
			return err
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return client.IgnoreNotFound(s.Client.Status().Update(ctx, n))
	}
}
