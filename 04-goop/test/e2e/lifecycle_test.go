package e2e

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// only is what w.leaves lists when nothing but the Goop is left.
func only(name string) string { return "*v1alpha1.Goop " + name }

// What takes long begins early, so that no process runs alone at the end.
var _ = Describe("A Goop", SpecPriority(1), func() {
	spec("that is suspended before its start creates nothing, and starts when it is resumed", func(w *testEnv) {
		goop := w.create("patient", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2)), Suspend: true})
		w.suspended(goop, 0)
		w.leaves(only("patient"))
		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = false })
		w.has(goop, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonResumed)
		w.complete(goop, 2)
	})
	spec("that is suspended ends unfinished workers, and after a resume only unfinished work runs again", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		quick := nodes[0]
		goop := w.create("paused", v1alpha1.GoopSpec{Cmd: quickOnOne, Env: []v1alpha1.EnvVar{{Name: "QUICK", Value: quick}}})
		until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			g.Expect(live.Status.Succeeded).To(BeEquivalentTo(1))
			g.Expect(live.Status.Running).To(BeEquivalentTo(len(nodes) - 1))
		})
		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
		w.suspended(goop, 1)
		w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
		Expect(w.pods(goop)[0].Spec.NodeName).To(Equal(quick), "the finished worker's pod stays, with its log")
		Expect(w.recorded(goop).Finished).To(HaveLen(1))

		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = false })
		w.letEnd(goop)
		w.complete(goop, len(nodes))
		for place, times := range pods.of(goop, v1alpha1.RoleWork) {
			if place == quick+"/0" {
				Expect(times).To(Equal(1), "%s has run again", place)
			} else {
				Expect(times).To(Equal(2), "%s", place)
			}
		}
	})
	spec("that has not ended by its deadline is Failed, its workers end, and recorded results count", func(w *testEnv) {
		nodes := w.nodes()
		quick := nodes[0]
		goop := w.create("late", v1alpha1.GoopSpec{
			Cmd: does(`test "$NODE_NAME" = "$QUICK" || sleep 600 # late`, onlyOn("QUICK")),
			Env: []v1alpha1.EnvVar{{Name: "QUICK", Value: quick}}, ActiveDeadlineSeconds: new(int64(600)),
		})
		until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			g.Expect(live.Status.Succeeded).To(BeEquivalentTo(1))
			g.Expect(live.Status.Running).To(BeEquivalentTo(len(nodes) - 1))
		})
		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
		Expect(w.failed(goop, v1alpha1.ReasonDeadlineExceeded)).To(ContainSubstring("activeDeadlineSeconds"))
		Eventually(func() []corev1.Pod { return w.pods(goop) }).WithTimeout(grace).WithPolling(expect.Interval).
			Should(HaveExactElements(HaveField("Spec.NodeName", quick)))
		until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			g.Expect(live.Status.Succeeded).To(BeEquivalentTo(1))
			g.Expect(live.Status.Running).To(BeZero())
		})
	})
	spec("leaves only itself when its TTL has expired, with its counts, and does not run again", func(w *testEnv) {
		pods := w.watch()
		goop := w.create("brief", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(3)), TTLSecondsAfterFinished: new(int32(3600))})
		w.complete(goop, 3)
		Expect(w.pods(goop)).To(HaveLen(3), "with their logs")
		w.expectOnce(pods, goop)

		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.TTLSecondsAfterFinished = new(int32(0)) })
		w.leaves(only("brief"))
		// A change of a mutable field does not start it again either.
		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
		w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend, spec.TTLSecondsAfterFinished = false, nil })
		Consistently(w.leftovers).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(ConsistOf(only("brief")))
		w.complete(goop, 3)
		Expect(pods.of(goop, v1alpha1.RoleWork)).To(HaveEach(1))
	})
	spec("that is deleted while it runs stops its workers within their grace period, and leaves nothing", func(w *testEnv) {
		nodes := w.nodes()
		goop := w.create("running", v1alpha1.GoopSpec{Cmd: endless})
		w.running(goop, len(nodes))
		w.delete(goop)
		w.noPods(goop, grace)
		w.leaves()
	})
	spec("leaves nothing, whenever it is deleted, and without a cleanupCmd no finalizer keeps it", func(w *testEnv) {
		e2e.AtOnce(map[string]func(*v1alpha1.Goop){
			"new":       func(*v1alpha1.Goop) {},
			"with-pods": func(goop *v1alpha1.Goop) { w.waitForPods(goop, 2) },
			"suspending": func(goop *v1alpha1.Goop) {
				w.running(goop, 2)
				w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
			},
			"suspended": func(goop *v1alpha1.Goop) {
				w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
				w.suspended(goop, 0)
			},
			"over": func(goop *v1alpha1.Goop) {
				w.running(goop, 2)
				w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
				w.failed(goop, v1alpha1.ReasonDeadlineExceeded)
			},
		}, w.deletes)
		w.leaves()
	})
	spec("of the same name in another namespace is not affected, and twelve in one namespace do not affect each other", func(w *testEnv) {
		var goops []*v1alpha1.Goop
		for i := range 12 {
			goops = append(goops, w.create(fmt.Sprintf("goop-%d", i), v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(1 + i%3))}))
		}
		for i, goop := range goops {
			w.complete(goop, 1+i%3)
			Expect(w.recorded(goop).Finished).To(HaveLen(1 + i%3))
		}
	})
})

var _ = Describe("The operator", func() {
	It("is killed in the middle, and no finished worker runs again", Serial, func(ctx SpecContext) {
		w := newTestEnv(ctx)
		pods := w.watch()
		nodes := w.nodes()
		var goops []*v1alpha1.Goop
		for i := range 4 {
			goops = append(goops, w.create(fmt.Sprintf("steady-%d", i), v1alpha1.GoopSpec{
				Cmd: quickOnOne, JobCount: new(int32(2 * len(nodes))), Env: []v1alpha1.EnvVar{{Name: "QUICK", Value: nodes[i%len(nodes)]}},
			}))
			if i == 1 {
				// Two are running, and two have only just been created.
				until(w, goops[0], func(g Gomega, goop *v1alpha1.Goop) { g.Expect(goop.Status.Succeeded).To(BeNumerically(">=", 2)) })
			}
		}
		Expect(env.Operator.Kill(ctx)).To(Succeed())
		w.letEnd(goops...)
		for _, goop := range goops {
			w.complete(goop, 2*len(nodes))
			w.expectEven(w.spread(goop), nodes)
			w.expectOnce(pods, goop)
		}
		made, err := audit.Read(ctx, env.Cluster, audit.By(env.Operator.User()), audit.Resource("apps", "daemonsets"),
			audit.Verbs("create"), audit.ResponseCode(201), audit.InNamespace(w.namespace))
		Expect(err).NotTo(HaveOccurred())
		// A request that was interrupted has no response with 201, but its DaemonSet may exist. None is created twice.
		var names []string
		for _, event := range made {
			names = append(names, event.ObjectRef.Name)
		}
		slices.Sort(names)
		Expect(slices.Compact(slices.Clone(names))).To(Equal(names), "%s", audit.Describe(made))
		Expect(names).NotTo(BeEmpty())
		for _, goop := range goops {
			Expect(w.daemonSets(goop)).To(HaveLen(2))
		}
	})
})

// deletes creates a Goop, brings it into a state, and deletes it.
func (w *testEnv) deletes(name string, live func(*v1alpha1.Goop)) {
	GinkgoHelper()
	goop := w.create(name, v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(2))})
	Expect(goop.Finalizers).To(BeEmpty())
	live(goop)
	Expect(goop.Finalizers).To(BeEmpty())
	w.delete(goop)
}
