package e2e

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

var (
	cleans      = does(`echo "$NODE_NAME is clean again"`, endsWith(0, "NODE is clean again\n"))
	cannotClean = does("echo cannot >&2; exit 5", endsWith(5, "cannot\n"))
)

var _ = Describe("A cleanupCmd", func() {
	spec("runs once before the Goop is removed, on every node where work ran, and on no other", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		one := w.create("one", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: cleans, JobCount: new(int32(len(nodes) - 1))})
		w.complete(one, len(nodes)-1)
		Expect(one.Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
		worked := w.spread(one)
		Expect(pods.of(one, v1alpha1.RoleCleanup)).To(BeEmpty(), "not before the Goop is deleted")
		w.delete(one)
		w.gone(one)
		cleaned := w.cleaned(pods, one, len(worked))
		for node := range worked {
			Expect(cleaned).To(ContainElement(node))
			Eventually(func() []string { return pods.messages(one) }).WithTimeout(expect.Soon).
				Should(ContainElement(ContainSubstring(node + " is clean again")))
		}
		w.hasEvent(one, "Normal", v1alpha1.ReasonCleanedUp)
		w.leaves()
	})
	spec("of a Goop that is deleted while it runs waits for the workers to end", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		goop := w.create("cut-short", v1alpha1.GoopSpec{Cmd: endless, CleanupCmd: cleans})
		w.running(goop, len(nodes))
		w.delete(goop)
		Eventually(w.ctx, func(g Gomega) {
			roles := map[string]bool{}
			for _, pod := range w.pods(goop) {
				roles[pod.Labels[v1alpha1.LabelRole]] = true
			}
			g.Expect(roles).NotTo(And(HaveKey(v1alpha1.RoleWork), HaveKey(v1alpha1.RoleCleanup)), "both at the same time")
			g.Expect(client.IgnoreNotFound(env.Client.Get(w.ctx, client.ObjectKeyFromObject(goop), goop))).To(Succeed())
			g.Expect(pods.of(goop, v1alpha1.RoleCleanup)).To(HaveLen(len(nodes)))
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
		w.gone(goop)
		w.hasEvent(goop, "Normal", v1alpha1.ReasonCleanedUp)
		w.leaves()
	})
	spec("that fails does not keep the Goop, and an Event lists the nodes", func(w *testEnv) {
		nodes := w.nodes()
		goop := w.create("dirty", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: cannotClean, Retries: new(int32(0))})
		w.complete(goop, len(nodes))
		w.delete(goop)
		w.gone(goop)
		note := w.hasEvent(goop, "Warning", v1alpha1.ReasonCleanupIncomplete)
		for _, node := range nodes {
			Expect(note).To(ContainSubstring(node + " (exit code 5)"))
		}
		w.leaves()
	})
	spec("that does not end is given up after cleanupTimeoutSeconds, and an Event lists the remaining nodes", func(w *testEnv) {
		nodes := w.nodes()
		goop := w.create("stuck", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: endless, CleanupTimeoutSeconds: 8})
		w.complete(goop, len(nodes))
		began := time.Now()
		w.delete(goop)
		w.gone(goop)
		Expect(time.Since(began)).To(BeNumerically(">", 6*time.Second))
		note := w.hasEvent(goop, "Warning", v1alpha1.ReasonCleanupIncomplete)
		for _, node := range nodes {
			Expect(note).To(ContainSubstring(node + " (not finished)"))
		}
		w.leaves()
	})
	spec("also runs where work was suspended, and after the TTL", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		suspended := w.create("suspended", v1alpha1.GoopSpec{Cmd: endless, CleanupCmd: cleans})
		brief := w.create("brief", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: cleans, TTLSecondsAfterFinished: new(int32(0))})
		w.running(suspended, len(nodes))
		w.change(suspended, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
		w.suspended(suspended, 0)
		w.complete(brief, len(nodes))
		w.noPods(brief, patience)
		for _, goop := range []*v1alpha1.Goop{suspended, brief} {
			w.delete(goop)
			w.gone(goop)
			w.cleaned(pods, goop, len(nodes))
		}
		w.leaves()
	})
})

var _ = Describe("A cleanupCmd", func() {
	It("runs on the existing nodes, and an Event lists a node that was deleted before", Serial, func(ctx SpecContext) {
		w := newTestEnv(ctx)
		pods := w.watch()
		lost := w.expendable()
		nodes := w.nodes()
		goop := w.create("widowed", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: cleans})
		w.complete(goop, len(nodes))
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).join(lost) })
		w.leave(lost)
		began := time.Now()
		w.delete(goop)
		w.gone(goop)
		Expect(time.Since(began)).To(BeNumerically("<", patience), "it does not wait for the deleted node")
		note := w.hasEvent(goop, "Warning", v1alpha1.ReasonCleanupIncomplete)
		Expect(note).To(ContainSubstring(lost + " (gone)"))
		Expect(w.cleaned(pods, goop, len(nodes)-1)).NotTo(ContainElement(lost))
		for _, node := range slices.DeleteFunc(nodes, func(node string) bool { return node == lost }) {
			Expect(note).NotTo(ContainSubstring(node + " ("))
		}
		// The pod garbage collector deletes its pods.
		Eventually(func() []string {
			return slices.DeleteFunc(w.leftovers(), func(object string) bool { return strings.HasPrefix(object, "*v1.Pod ") })
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(BeEmpty())
		Eventually(func() []corev1.Pod {
			return slices.DeleteFunc(w.pods(goop), func(pod corev1.Pod) bool { return pod.Spec.NodeName == lost })
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(BeEmpty())
	})
})
