package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Q12: is an operator needed for Goop at all? Not for what Goop's author asks of it: a number of workers that print
// something, "Completed" when all have finished, and spread over nodes. The operator is stopped here, and the files of
// ../../plain do all of that.
var _ = Describe("TestSeedQuestion_GoopsJobNeedsNoOperator:", func() {
	It("with the operator stopped, a Job and a DaemonSet do the same work, and a Goop waits", Serial, func(ctx SpecContext) {
		Expect(env.Operator.Stop(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Operator.Start(ctx)).To(Succeed()) })
		w := newTestEnv(ctx)
		nodes, err := env.Cluster.Nodes(ctx)
		Expect(err).NotTo(HaveOccurred())
		goop := w.create("waits", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(6))})

		job := plainJob(w)
		// The pods of both files have the same label.
		other := newTestEnv(ctx)
		daemonSet := plainDaemonSet(other, nil)

		w.simulateJob(job)
		until(w, job, func(g Gomega, j *batchv1.Job) {
			g.Expect(j.Status.Succeeded).To(BeEquivalentTo(6))
			g.Expect(j.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
		})
		other.simulatePlain(daemonSet, len(nodes))
		for _, node := range nodes {
			other.plainPodOn(daemonSet, node.Name)
		}
		until(other, daemonSet, func(g Gomega, d *appsv1.DaemonSet) { g.Expect(d.Status.NumberReady).To(BeEquivalentTo(len(nodes))) })

		always(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status).To(BeZero()) })
	})
})
