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

// eligibility is whether workers of a Goop may run on a node.
type eligibility int

const (
	// notEligible: no worker may run there.
	notEligible eligibility = iota
	// eligibleIfAtWork: a worker that runs there may stay, but no other may start.
	eligibleIfAtWork
	// isEligible: workers may run there, at once or when the node is ready.
	isEligible
)

// temporaryTaints tolerates the taints by which Kubernetes marks temporary conditions of a node. While some of them last,
// no pods of DaemonSets are created there. Work for such a node waits, because the node is still a member of the cluster.
var temporaryTaints = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// eligibilityOf returns the eligibility of a node by the rules of the DaemonSet controller
// (k8s.io/kubernetes/pkg/controller/daemon, NodeShouldRunDaemonPod).
func eligibilityOf(goop *v1alpha1.Goop, node *corev1.Node) eligibility {
	if !labels.SelectorFromSet(goop.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return notEligible
	}
	// The worker is a program for Linux. A kubelet always sets the label.
	if os, found := node.Labels[corev1.LabelOSStable]; found && os != string(corev1.Linux) {
		return notEligible
	}
	result := isEligible
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || tolerated(goop.Spec.Tolerations, taint) || tolerated(temporaryTaints, taint) {
			continue
		}
		if taint.Effect == corev1.TaintEffectNoExecute {
			return notEligible
		}
		result = eligibleIfAtWork
	}
	return result
}

// isUnhealthy reports whether a node has a temporary condition that keeps work from starting. A cordoned node does not
// count, because DaemonSets tolerate that.
func isUnhealthy(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key != corev1.TaintNodeUnschedulable && tolerated(temporaryTaints, &taint)
	})
}

func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), taint, true)
	})
}

// nodes are the nodes of the cluster.
type nodes struct {
	// there has all nodes, by name.
	there map[string]*corev1.Node
	// in and stay are the names of nodes that are eligible, or eligible if a worker runs there.
	in   []string
	stay map[string]bool
	// unhealthy are the names of nodes where work may not begin for now.
	unhealthy map[string]bool
}

// eligible returns the names, sorted, of the nodes that may be used. A node where one of our workers runs is among them
// for as long as the worker may stay.
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

// isUnreachable reports whether a node is unreachable. Pods that are deleted there terminate only when it responds again.
func (n nodes) isUnreachable(name string) bool {
	node := n.there[name]
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnreachable
	})
}

// isReachable reports whether a node exists and responds, so that pods that are deleted there will terminate.
func (n nodes) isReachable(name string) bool { return n.there[name] != nil && !n.isUnreachable(name) }

// anyReachable reports whether any of these nodes is reachable.
func (n nodes) anyReachable(names map[string]bool) bool {
	for name := range names {
		if n.isReachable(name) {
			return true
		}
	}
	return false
}

// nodesFor lists the nodes from the cache. They are not copied, so they must not be changed.
func (r *GoopReconciler) nodesFor(ctx context.Context, goop *v1alpha1.Goop) (nodes, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nodes{}, fmt.Errorf("listing Nodes: %w", err)
	}
	all := nodes{there: make(map[string]*corev1.Node, len(list.Items)), stay: map[string]bool{}, unhealthy: map[string]bool{}}
	for i := range list.Items {
		node := &list.Items[i]
		all.there[node.Name] = node
		if isUnhealthy(node) {
			all.unhealthy[node.Name] = true
		}
		switch eligibilityOf(goop, node) {
		case isEligible:
			all.in = append(all.in, node.Name)
		case eligibleIfAtWork:
			all.stay[node.Name] = true
		}
	}
	return all, nil
}
