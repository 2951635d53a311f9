package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The eligibility of nodes follows the rules of the DaemonSet controller.
func TestEligibilityOfANode(t *testing.T) {
	t.Parallel()
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	taint := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: key, Value: "v", Effect: effect}}
	}
	tolerating := func(tolerations ...corev1.Toleration) *v1alpha1.Goop {
		return aGoop(func(s *v1alpha1.GoopSpec) { s.Tolerations = tolerations })
	}
	ssd := aGoop(func(s *v1alpha1.GoopSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} })
	for name, test := range map[string]struct {
		goop   *v1alpha1.Goop
		labels map[string]string
		taints []corev1.Taint
		want   eligibility
	}{
		"any":                      {aGoop(), nil, nil, isEligible},
		"with the labels":          {ssd, map[string]string{"disk": "ssd", "x": "y"}, nil, isEligible},
		"with other labels":        {ssd, map[string]string{"disk": "hdd"}, nil, notEligible},
		"without labels":           {ssd, nil, nil, notEligible},
		"of Windows":               {aGoop(), map[string]string{corev1.LabelOSStable: "windows"}, nil, notEligible},
		"of Linux":                 {aGoop(), map[string]string{corev1.LabelOSStable: "linux"}, nil, isEligible},
		"cordoned":                 {aGoop(), nil, taint(corev1.TaintNodeUnschedulable, noSchedule), isEligible},
		"not ready, no pods come":  {aGoop(), nil, taint(corev1.TaintNodeNotReady, noSchedule), isEligible},
		"not ready, pods go":       {aGoop(), nil, taint(corev1.TaintNodeNotReady, noExecute), isEligible},
		"unreachable, pods go":     {aGoop(), nil, taint(corev1.TaintNodeUnreachable, noExecute), isEligible},
		"short of disk":            {aGoop(), nil, taint(corev1.TaintNodeDiskPressure, noSchedule), isEligible},
		"short of memory":          {aGoop(), nil, taint(corev1.TaintNodeMemoryPressure, noSchedule), isEligible},
		"short of processes":       {aGoop(), nil, taint(corev1.TaintNodePIDPressure, noSchedule), isEligible},
		"without a network":        {aGoop(), nil, taint(corev1.TaintNodeNetworkUnavailable, noSchedule), isEligible},
		"of the control plane":     {aGoop(), nil, taint("node-role.kubernetes.io/control-plane", noSchedule), eligibleIfAtWork},
		"to be emptied":            {aGoop(), nil, taint("maintenance", noExecute), notEligible},
		"both":                     {aGoop(), nil, append(taint("a", noSchedule), taint("b", noExecute)...), notEligible},
		"better not":               {aGoop(), nil, taint("a", corev1.TaintEffectPreferNoSchedule), isEligible},
		"tolerated by key":         {tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}), nil, taint("a", noExecute), isEligible},
		"tolerated by value":       {tolerating(corev1.Toleration{Key: "a", Value: "v"}), nil, taint("a", noSchedule), isEligible},
		"not with this value":      {tolerating(corev1.Toleration{Key: "a", Value: "w"}), nil, taint("a", noSchedule), eligibleIfAtWork},
		"not with this effect":     {tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: noSchedule}), nil, taint("a", noExecute), notEligible},
		"whatever is tolerated":    {tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), nil, append(taint("a", noSchedule), taint("b", noExecute)...), isEligible},
		"one of two not tolerated": {tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}), nil, append(taint("a", noSchedule), taint("b", noSchedule)...), eligibleIfAtWork},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: test.labels}, Spec: corev1.NodeSpec{Taints: test.taints}}
		NewWithT(t).Expect(eligibilityOf(test.goop, node)).To(Equal(test.want), name)
	}
}

// A worker may stay on a node where no new worker may start.
func TestEligibleNodes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	all := nodes{in: []string{"c", "a"}, stay: map[string]bool{"b": true, "d": true}}
	g.Expect(all.eligible(nil)).To(Equal([]string{"a", "c"}))
	g.Expect(all.eligible(map[string]bool{"b": true, "e": true})).To(Equal([]string{"a", "b", "c"}))
	g.Expect(all.in).To(Equal([]string{"c", "a"}), "the observation is not changed")
}
