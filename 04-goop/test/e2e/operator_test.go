package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

const (
	// budget is how many writes a Goop may cause besides its DaemonSets and its Events, and besides one a second while it
	// runs.
	budget = 4
	// news is the number of Events of a Goop that runs and ends.
	news = 2
	// steadyStateTime is how long nothing may be written in steady state.
	steadyStateTime = 30 * time.Second
	// afterRestart is how long nothing may be written after a restart of the operator.
	afterRestart = 10 * time.Second
)

var _ = Describe("The operator", func() {
	It("writes for a Goop its DaemonSets, four more times and two Events, and at most once a second while it runs", func(ctx SpecContext) {
		for _, workers := range []int{1, 10, 60} {
			if env.Cluster.RunsContainers() && workers > 10 {
				continue
			}
			w := newTestEnv(ctx)
			began := time.Now()
			goop := w.create("counted", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(workers))})
			w.complete(goop, workers)
			until(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeZero()) })
			seconds := int(time.Since(began).Seconds()) + 1
			w.hasEvent(goop, "Normal", v1alpha1.ReasonSucceeded)
			rounds := len(w.daemonSets(goop))
			writes := env.WritesIn(ctx, w.namespace)
			Expect(len(writes)).To(BeNumerically("<=", rounds+budget+news+seconds), "%d workers, %d s: %s", workers, seconds, audit.Describe(writes))
			AddReportEntry("writes", map[string]int{"workers": workers, "rounds": rounds, "writes": len(writes), "seconds": seconds})
		}
	})

	// It takes longest, so it begins first.
	It("writes nothing in steady state", SpecPriority(2), func(ctx SpecContext) {
		w := newTestEnv(ctx)
		w.settles()
		settled := w.settledWrites()
		Consistently(func() []audit.Event { return env.WritesIn(ctx, w.namespace) }).WithTimeout(steadyStateTime).WithPolling(5 * time.Second).
			Should(HaveLen(len(settled)))
	})

	It("writes nothing on a restart", Serial, func(ctx SpecContext) {
		w := newTestEnv(ctx)
		w.settles()
		settled := w.settledWrites()
		Expect(env.Operator.Restart(ctx)).To(Succeed())
		Consistently(func() []audit.Event { return env.WritesIn(ctx, w.namespace) }).WithTimeout(afterRestart).WithPolling(time.Second).
			Should(HaveLen(len(settled)))
	})

	It("serves its metrics only to users with the permission to read them", Serial, func(ctx SpecContext) {
		env.ExpectGuardedMetrics(ctx, "goop-metrics-reader", "controller_runtime_reconcile_total")
	})
})

// settles creates Goops of each kind that is in steady state or waits, and waits until they are.
func (w *testEnv) settles() {
	GinkgoHelper()
	nodes := w.nodes()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "taken-record-0"}}
	Expect(env.Client.Create(w.ctx, configMap)).To(Succeed())
	suspended := w.create("suspended", v1alpha1.GoopSpec{Cmd: greets, Suspend: true})
	running := w.create("running", v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(3)), ActiveDeadlineSeconds: new(int64(3600)), CleanupCmd: cleans})
	succeeded := w.create("succeeded", v1alpha1.GoopSpec{Cmd: greets, TTLSecondsAfterFinished: new(int32(3600))})
	failed := w.create("failed", v1alpha1.GoopSpec{Cmd: fails, JobCount: new(int32(1)), Retries: new(int32(1))})
	nowhere := w.create("nowhere", v1alpha1.GoopSpec{Cmd: greets, NodeSelector: map[string]string{"no-such": "node"}})
	rejected := w.create("rejected", v1alpha1.GoopSpec{Cmd: greets, Host: &v1alpha1.HostAccess{PID: true}})
	taken := w.create("taken", v1alpha1.GoopSpec{Cmd: greets})

	w.suspended(suspended, 0)
	w.running(running, 3)
	w.complete(succeeded, len(nodes))
	w.failed(failed, v1alpha1.ReasonWorkersFailed)
	w.has(nowhere, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNoEligibleNodes)
	w.has(rejected, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonHostAccessNotAllowed)
	w.has(taken, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
}

// settledWrites waits until nothing was written for a while, and returns all writes.
func (w *testEnv) settledWrites() []audit.Event {
	GinkgoHelper()
	var settled []audit.Event
	Eventually(w.ctx, func(g Gomega) {
		settled = env.WritesIn(w.ctx, w.namespace)
		quiet := time.Now().Add(-expect.SteadyState)
		g.Expect(settled).To(HaveEach(HaveField("StageTimestamp.Time", BeTemporally("<", quiet))))
	}).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
	return settled
}
