package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/workbook/04-goop/internal/plan"
)

// A Goop is deleted and created again, and a pod of the first one is left without an owner. The DaemonSets of the second
// do not adopt it, because it has run another command.
func TestPodsOfAnEarlierGoopAreNotAdopted(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	first, second := aGoop(cleanup), aGoop(cleanup)
	second.UID = "another-goop"
	round := plan.Round{Nodes: []string{"a"}}
	for _, test := range []struct{ own, old *appsv1.DaemonSet }{
		{desiredRound(second, round, testImages), desiredRound(first, round, testImages)},
		{desiredCleanup(second, round.Nodes, testImages), desiredCleanup(first, round.Nodes, testImages)},
	} {
		selector, err := metav1.LabelSelectorAsSelector(test.own.Spec.Selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selector.Matches(labels.Set(test.own.Spec.Template.Labels))).To(BeTrue())
		g.Expect(selector.Matches(labels.Set(test.old.Spec.Template.Labels))).To(BeFalse())
	}
}

// Such a pod may never terminate, so the cleanup does not wait for it.
func TestPodsOfAnEarlierGoopDoNotBlockTheCleanup(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"on the same node": "a", "on another node": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, workers(1))
			f.runs("a/0")
			own := f.pod("a/0")
			first := f.goop()
			first.UID = "earlier"
			old := podOf(desiredRound(first, plan.Round{Nodes: []string{f.node("a")}}, testImages), f.node(at))
			old.OwnerReferences = nil
			f.Expect(f.client.Create(f.ctx, old)).To(Succeed())
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			f.clock.SetTime(time.Now())
			f.endsWork()
			f.reconciles(3)
			f.Expect(f.daemonSets()).To(And(Not(HaveKey("job-0")), Not(HaveKey("job-cleanup"))), "its own pod still exists")
			f.removePod(own)
			f.reconciles(3)
			f.Expect(f.daemonSets()).To(HaveKey("job-cleanup"))
			round := roundOf(0, f.daemonSets()["job-cleanup"])
			f.Expect(round.Nodes).To(Equal([]string{f.node("a")}))
		})
	}
}
