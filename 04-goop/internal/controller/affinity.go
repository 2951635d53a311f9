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

// roundOf reads the nodes of a round from the affinity of its DaemonSet. It ignores what other writers add, whether to our
// terms or as terms of their own: an admission policy would add it again.
func roundOf(number int, daemonSet *appsv1.DaemonSet) plan.Round {
	round, own := plan.Round{Number: number}, 0
	for _, term := range requiredTerms(daemonSet.Spec.Template.Spec.Affinity) {
		operator, nodes := readTerm(term, round.Nodes)
		if operator == "" {
			continue
		}
		own++
		round.Everywhere = round.Everywhere || operator == corev1.NodeSelectorOpNotIn
		round.Nodes = nodes
	}
	// A node has to match one of the terms, so a second one lets in what the first leaves out.
	if own == 0 || (round.Everywhere && own > 1) {
		return plan.Round{Number: number, Everywhere: true}
	}
	slices.Sort(round.Nodes)
	round.Nodes = slices.Compact(round.Nodes)
	return round
}

// same reports whether two rounds have the same nodes.
func same(a, b plan.Round) bool {
	return a.Everywhere == b.Everywhere && slices.Equal(a.Nodes, b.Nodes)
}

// readTerm appends the nodes of a term that nodeSelectorOf has written, and returns its operator; "" if another writer has
// written it.
func readTerm(term corev1.NodeSelectorTerm, nodes []string) (operator corev1.NodeSelectorOperator, _ []string) {
	if slices.ContainsFunc(term.MatchExpressions, isNone) {
		return corev1.NodeSelectorOpExists, nodes
	}
	for _, field := range term.MatchFields {
		several := operator != "" && (operator != field.Operator || operator == corev1.NodeSelectorOpIn)
		if field.Key != metav1.ObjectNameField || len(field.Values) != 1 || several {
			return "", nil
		}
		operator, nodes = field.Operator, append(nodes, field.Values[0])
	}
	return operator, nodes
}

func isNone(label corev1.NodeSelectorRequirement) bool {
	return label.Key == labelNone && label.Operator == corev1.NodeSelectorOpExists
}
