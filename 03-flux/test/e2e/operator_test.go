package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

const (
	// budget is the maximum number of writes of both controllers together for a Flux from its creation until it is
	// Complete, whatever its size, apart from readiness.
	budget = 17
	// readiness is the number of objects that report how many ranks are ready, each at most once a second.
	readiness = 2
	// steadyState is how long nothing must be written.
	steadyState = 30 * time.Second
	// afterRestart is how long nothing must be written after a restart, in which the operator reconciles all objects.
	afterRestart = 10 * time.Second
)

var _ = Describe("The operator", func() {
	It("writes at most seventeen times for a Flux, whatever its size, and once a second for its readiness", func(ctx SpecContext) {
		for _, size := range sizes() {
			w := newTestEnv(ctx)
			flux := w.create("counted", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: size})
			began := time.Now()
			ranks := w.all(flux)
			if !env.Cluster.RunsContainers() {
				// The pods become ready one after the other, so that each could cause a status write.
				began = time.Now()
				for _, pod := range ranks[1:] {
					w.simulate(pod, ready)
				}
			}
			w.complete(flux)
			seconds := int(time.Since(began).Seconds()) + 1
			Eventually(func() []string { return w.events(flux) }).WithTimeout(expect.Soon).Should(ContainElement("Normal CommandSucceeded"))
			writes := env.WritesIn(ctx, w.namespace)
			Expect(len(writes)).To(BeNumerically("<=", budget+readiness*seconds), "size %d, %d s: %s", size, seconds, audit.Describe(writes))
			AddReportEntry("writes", map[string]int{"size": int(size), "writes": len(writes), "seconds": seconds})
		}
	})

	// It takes longest, so it begins first.
	It("writes nothing in steady state", SpecPriority(2), func(ctx SpecContext) {
		w := newTestEnv(ctx)
		w.settles()
		settled := w.settledWrites()
		Consistently(func() []audit.Event { return env.WritesIn(ctx, w.namespace) }).WithTimeout(steadyState).WithPolling(5 * time.Second).
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
		env.ExpectGuardedMetrics(ctx, "flux-operator-metrics-reader", "controller_runtime_reconcile_total")
	})
})

// settles creates Fluxes of each sort that is in steady state, or that waits, and waits until they are settled.
func (w *testEnv) settles() {
	GinkgoHelper()
	suspended := w.create("suspended", v1alpha1.FluxSpec{Command: sh("exit 0"), Suspend: true})
	running := w.create("running", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 3})
	succeeded := w.create("succeeded", v1alpha1.FluxSpec{Command: sh("exit 0"), TTLSecondsAfterFinished: new(int32(3600))})
	fails := w.create("fails", v1alpha1.FluxSpec{Command: sh("exit 3"), MaxRestarts: 1})
	starting := w.create("starting", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2, Template: &v1alpha1.PodTemplate{SchedulerName: byHand}})
	service := serviceOf(&v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "taken"}})
	service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	Expect(env.Client.Create(w.ctx, service)).To(Succeed())
	conflicted := w.create("taken", v1alpha1.FluxSpec{Command: sh("exit 0")})

	w.suspended(suspended)
	w.running(running)
	w.complete(succeeded)
	w.begin(fails)
	w.endLeader(fails, 3, "")
	w.attempt(fails, 2)
	w.begin(fails)
	w.endLeader(fails, 3, "")
	w.failed(fails, v1alpha1.ReasonCommandFailed)
	w.all(starting)
	w.has(conflicted, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
}

// sizes are the sizes of a small and of a large Flux that the cluster has room for.
func sizes() []int32 {
	if env.Cluster.RunsContainers() {
		return []int32{1, 8}
	}
	return []int32{1, 4, 40}
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
