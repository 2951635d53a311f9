package controller

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/internal/plan"
)

// nodeSelectorOf returns the node selector for the nodes of a round; nil if the round has all nodes. The API server
// allows one name in each requirement, so a list of nodes has one term for each node.
func nodeSelectorOf(round plan.Round) *corev1.NodeSelector {
	named := func(operator corev1.NodeSelectorOperator, node string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: operator, Values: []string{node}}
	}
	var terms []corev1.NodeSelectorTerm
	switch {
	case round.Everywhere && len(round.Nodes) == 0:
		return nil
	case round.Everywhere:
		fields := make([]corev1.NodeSelectorRequirement, 0, len(round.Nodes))
		for _, node := range round.Nodes {
			fields = append(fields, named(corev1.NodeSelectorOpNotIn, node))
		}
		terms = []corev1.NodeSelectorTerm{{MatchFields: fields}}
	case len(round.Nodes) == 0:
		terms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: labelNone, Operator: corev1.NodeSelectorOpExists},
		}}}
	default:
		for _, node := range round.Nodes {
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{named(corev1.NodeSelectorOpIn, node)}})
		}
	}
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// roundOf reads a node selector that nodeSelectorOf has written. It returns false if the selector is different, because
// another writer has changed it.
func roundOf(number int, daemonSet *appsv1.DaemonSet) (plan.Round, bool) {
	round := plan.Round{Number: number}
	affinity := daemonSet.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		round.Everywhere = true
		return round, true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) == 1 && isNone(terms[0]) {
		return round, true
	}
	ours := true
	for _, term := range terms {
		ours = readTerm(&round, term) && ours
	}
	// nodeSelectorOf writes nodes in sorted order, and excluded nodes in a single term.
	ours = ours && slices.IsSorted(round.Nodes) && (!round.Everywhere || len(terms) == 1)
	slices.Sort(round.Nodes)
	return round, ours
}

// readTerm adds the nodes of a term to a round, and reports whether the term is written as by nodeSelectorOf.
func readTerm(round *plan.Round, term corev1.NodeSelectorTerm) bool {
	ours := len(term.MatchExpressions) == 0 && len(term.MatchFields) > 0
	for _, field := range term.MatchFields {
		everywhere := field.Operator == corev1.NodeSelectorOpNotIn
		if field.Key != metav1.ObjectNameField || len(field.Values) != 1 || (len(round.Nodes) > 0 && everywhere != round.Everywhere) {
			ours = false
			continue
		}
		round.Everywhere = everywhere
		round.Nodes = append(round.Nodes, field.Values[0])
	}
	return ours && (round.Everywhere || len(term.MatchFields) == 1)
}

func isNone(term corev1.NodeSelectorTerm) bool {
	return len(term.MatchFields) == 0 && len(term.MatchExpressions) == 1 &&
		term.MatchExpressions[0].Key == labelNone && term.MatchExpressions[0].Operator == corev1.NodeSelectorOpExists
}
