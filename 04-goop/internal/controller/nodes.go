package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// eligibility says whether workers of a Goop may be on a node.
type eligibility int

const (
	// notEligible: no worker may be there.
	notEligible eligibility = iota
	// eligibleIfAtWork: a worker that is there may stay, and none comes.
	eligibleIfAtWork
	// isEligible: workers may be there, at once or when the node is ready.
	isEligible
)

// passing are taints by which Kubernetes says that a node's trouble may pass. Some of them keep the pods of
// DaemonSets away while they last: then the work waits. The node has not left.
var passing = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// eligibilityOf is what a node is to a Goop, as the DaemonSet controller sees it
// (k8s.io/kubernetes/pkg/controller/daemon, NodeShouldRunDaemonPod).
func eligibilityOf(goop *v1alpha1.Goop, node *corev1.Node) eligibility {
	if !labels.SelectorFromSet(goop.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return notEligible
	}
	result := isEligible
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || tolerated(goop.Spec.Tolerations, taint) || tolerated(passing, taint) {
			continue
		}
		if taint.Effect == corev1.TaintEffectNoExecute {
			return notEligible
		}
		result = eligibleIfAtWork
	}
	return result
}

func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), taint, true)
	})
}

// nodes are those of the cluster.
type nodes struct {
	// there are all, by name.
	there map[string]*corev1.Node
	// in and stay are the names of those that have this eligibility.
	in   []string
	stay map[string]bool
}

// eligible are the names, sorted, of the nodes that may be used: those on which a worker of ours is at work stay
// eligible for as long as it may stay.
func (n nodes) eligible(atWork map[string]bool) []string {
	all := slices.Clone(n.in)
	for name := range n.stay {
		if atWork[name] {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// isUnreachable tells whether a node does not respond: what is deleted there is not gone until it does.
func (n nodes) isUnreachable(name string) bool {
	node := n.there[name]
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnreachable
	})
}

// nodesFor lists the nodes from the cache. They are not copied, so they must not be changed.
func (r *GoopReconciler) nodesFor(ctx context.Context, goop *v1alpha1.Goop) (nodes, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nodes{}, fmt.Errorf("listing Nodes: %w", err)
	}
	all := nodes{there: make(map[string]*corev1.Node, len(list.Items)), stay: map[string]bool{}}
	for i := range list.Items {
		node := &list.Items[i]
		all.there[node.Name] = node
		switch eligibilityOf(goop, node) {
		case isEligible:
			all.in = append(all.in, node.Name)
		case eligibleIfAtWork:
			all.stay[node.Name] = true
		}
	}
	return all, nil
}
