package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

// Two of these specs cordon a node. They run one after the other, because each depends on which nodes are cordoned. No other
// spec does, unless it is Serial: pods of DaemonSets, and so the workers of Goops, tolerate it. Together they take
// long, so they begin early.
var _ = Describe("Of the nodes,", SpecPriority(1), Ordered, ContinueOnFailure, func() {
	spec("without an operator, a Job spreads its workers over all, and is Complete when all have succeeded", func(w *testEnv) {
		job := plainJob(w)
		w.simulateJob(job)
		nodes, err := env.Cluster.Nodes(w.ctx)
		Expect(err).NotTo(HaveOccurred())
		counts := map[string]int{}
		for _, pod := range w.podsOfJob(job) {
			counts[pod.Spec.NodeName]++
		}
		var names []string
		for _, node := range nodes {
			names = append(names, node.Name)
		}
		w.expectEven(counts, names)
		until(w, job, func(g Gomega, j *batchv1.Job) {
			g.Expect(j.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
		})
	})
	spec("without an operator, a Job leaves out one that is cordoned, where a Goop does not", func(w *testEnv) {
		nodes, err := env.Cluster.Nodes(w.ctx)
		Expect(err).NotTo(HaveOccurred())
		cordoned := nodes[0].Name
		w.cordon(cordoned, true)
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).cordon(cordoned, false) })
		job := plainJob(w)
		Eventually(func() []corev1.Pod { return w.podsOfJob(job) }).WithTimeout(patience).WithPolling(expect.Interval).
			Should(And(HaveLen(6), HaveEach(HaveField("Spec.NodeName", And(Not(BeEmpty()), Not(Equal(cordoned)))))))
		goop := w.create("all", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(w.nodes()))
		Expect(w.spread(goop)).To(HaveKey(cordoned))
	})
	spec("a Goop has its worker on one that is cordoned, because pods of DaemonSets tolerate it", func(w *testEnv) {
		nodes := w.nodes()
		w.cordon(nodes[len(nodes)-1], true)
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).cordon(nodes[len(nodes)-1], false) })
		each := w.create("each", v1alpha1.GoopSpec{Cmd: greets})
		counted := w.create("counted", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(len(nodes)))})
		w.complete(each, len(nodes))
		w.complete(counted, len(nodes))
		w.expectEven(w.spread(counted), nodes)
	})

})
