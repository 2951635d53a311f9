package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// grace is the time within which the pods of a Flux must be deleted: the grace period of ten seconds, and what the
// nodes need on a busy machine.
const grace = 30 * time.Second

// What takes long begins early, so that no process runs alone at the end.
var _ = Describe("A Flux", SpecPriority(1), func() {
	spec("that is suspended before its start creates nothing, and starts when it is resumed", func(w *testEnv) {
		flux := w.create("patient", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2, Suspend: true})
		w.suspended(flux)
		Expect(w.leftovers()).To(ConsistOf("*v1alpha1.Flux patient", "*v1alpha1.FluxSetup patient"))

		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = false })
		w.has(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonNotSuspended)
		w.complete(flux)
		Expect(flux.Status.Restarts).To(BeZero())
	})
	spec("that is suspended while it runs terminates its pods within their grace period, and runs again when it is resumed", func(w *testEnv) {
		pods := w.record()
		flux := w.create("paused", v1alpha1.FluxSpec{
			Command: sh(`test "$ATTEMPT" = 2 || sleep 600`), Size: 2, Template: withAttempt(),
		})
		w.running(flux)
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
		w.noPods(flux, grace)
		w.suspended(flux)
		w.has(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, "")
		Expect(w.leftovers()).To(ConsistOf("*v1alpha1.Flux paused", "*v1alpha1.FluxSetup paused"))

		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = false })
		w.complete(flux)
		Expect(flux.Status.Restarts).To(BeZero(), "a resume is not a restart")
		w.expectOnce(pods, flux, 2)
	})
	spec("leaves only itself and its FluxSetup when its TTL has expired, and does not run again", func(w *testEnv) {
		pods := w.record()
		flux := w.create("brief", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2, TTLSecondsAfterFinished: new(int32(3600))})
		w.complete(flux)
		w.there(launched(flux)...)
		Expect(w.leader(flux)).NotTo(BeNil(), "with its log")

		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.TTLSecondsAfterFinished = new(int32(0)) })
		Eventually(w.leftovers).WithTimeout(patience).WithPolling(expect.Interval).
			Should(ConsistOf("*v1alpha1.Flux brief", "*v1alpha1.FluxSetup brief"))
		// It does not run again after a change of its mutable fields either.
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend, spec.TTLSecondsAfterFinished = false, nil })
		Consistently(w.leftovers).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).
			Should(ConsistOf("*v1alpha1.Flux brief", "*v1alpha1.FluxSetup brief"))
		w.has(flux, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
		Expect(flux.Status.ExitCode).To(HaveValue(BeZero()))
		w.expectOnce(pods, flux, 1)
	})
	spec("leaves nothing, whenever it is deleted, and no finalizer delays that", func(w *testEnv) {
		e2e.AtOnce(map[string]func(*v1alpha1.Flux){
			"new":      func(*v1alpha1.Flux) {},
			"set-up":   func(flux *v1alpha1.Flux) { until(w, setupOf(flux), func(Gomega, *v1alpha1.FluxSetup) {}) },
			"launched": func(flux *v1alpha1.Flux) { until(w, jobOf(flux), func(Gomega, *batchv1.Job) {}) },
			"made":     func(flux *v1alpha1.Flux) { w.all(flux) },
			"running":  w.running,
			"suspending": func(flux *v1alpha1.Flux) {
				w.running(flux)
				w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
			},
			"suspended": func(flux *v1alpha1.Flux) {
				w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
				w.suspended(flux)
			},
			"restarting": func(flux *v1alpha1.Flux) {
				w.running(flux)
				w.delete(w.leader(flux))
				w.has(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, "")
			},
			"over": func(flux *v1alpha1.Flux) {
				w.running(flux)
				w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
				w.failed(flux, v1alpha1.ReasonDeadlineExceeded)
			},
		}, w.deletes)
		Eventually(w.leftovers).WithTimeout(patience).WithPolling(expect.Interval).Should(BeEmpty())
	})
	spec("whose FluxSetup is deleted by a user is Failed, SetupLost, and gets no second one", func(w *testEnv) {
		running := w.create("running", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2, MaxRestarts: 3})
		w.running(running)
		w.delete(setupOf(running))
		w.failed(running, v1alpha1.ReasonSetupLost)
		Eventually(w.leftovers).WithTimeout(patience).WithPolling(expect.Interval).
			Should(ConsistOf("*v1alpha1.Flux running"))
		always(w, running, func(g Gomega, flux *v1alpha1.Flux) {
			condition(g, flux.Status.Conditions, v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonSetupLost)
			g.Expect(w.leftovers()).To(ConsistOf("*v1alpha1.Flux running"))
		})
	})
	spec("whose Job is deleted by a user is Failed, JobLost, and the Job is not created again in that attempt", func(w *testEnv) {
		pods := w.record()
		last := w.create("last", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2})
		w.running(last)
		w.delete(jobOf(last))
		w.failed(last, v1alpha1.ReasonJobLost)
		w.noPods(last, grace)
		w.expectOnce(pods, last, 1)
	})
})

var _ = Describe("The operator", func() {
	It("is killed while Fluxes run, and each command still runs exactly once", Serial, func(ctx SpecContext) {
		w := newTestEnv(ctx)
		pods := w.record()
		var fluxes []*v1alpha1.Flux
		for i := range 4 {
			fluxes = append(fluxes, w.create(fmt.Sprintf("steady-%d", i), v1alpha1.FluxSpec{
				Command: sh("sleep 5; exit " + fmt.Sprint(i)), Size: 1,
			}))
			if i == 1 {
				// The first two may run when the operator is killed; the other two have just been created.
				w.running(fluxes[0])
			}
		}
		Expect(env.Operator.Kill(ctx)).To(Succeed())
		w.complete(fluxes[0])
		for i, flux := range fluxes[1:] {
			w.begin(flux)
			w.endLeader(flux, int32(i+1), "")
			w.failed(flux, v1alpha1.ReasonCommandFailed)
			Expect(flux.Status.ExitCode).To(HaveValue(Equal(int32(i + 1))))
		}
		for _, flux := range fluxes {
			w.expectOnce(pods, flux, 1)
		}
		jobs, err := audit.Read(ctx, env.Cluster, audit.By(env.Operator.User()), audit.Resource("batch", "jobs"),
			audit.Verbs("create"), audit.ResponseCode(201), audit.InNamespace(w.namespace))
		Expect(err).NotTo(HaveOccurred())
		Expect(jobs).To(HaveLen(len(fluxes)), "%s", audit.Describe(jobs))
	})
})

// deletes creates a Flux, and deletes it in the state that reach brings it to.
func (w *testEnv) deletes(name string, reach func(*v1alpha1.Flux)) {
	GinkgoHelper()
	flux := w.create(name, v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2, MaxRestarts: 1})
	reach(flux)
	w.delete(flux)
}

// suspended waits until a Flux is suspended, and has no dependents left.
func (w *testEnv) suspended(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.has(flux, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	Expect(w.pods(flux)).To(BeEmpty())
}
