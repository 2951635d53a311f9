package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// For each Foo, from its creation until it is Ready: one write of the Deployment, two of the status, one Event. In steady state
// none; after a restart none.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		const many = 20
		running := e.start()
		var foos []*v1alpha1.Foo
		for i := range many {
			name := fmt.Sprintf("foo-%02d", i)
			foos = append(foos, e.create(name, name))
		}
		for _, f := range foos {
			e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			e.expectAvailable(f, 1)
		}
		writes := func() map[string]int { return count(e.writes()) }
		budget := map[string]int{
			"patch deployments / 201": many,
			"patch foos/status / 200": 2 * many,
			"create events / 201":     many,
		}
		e.Eventually(writes).WithTimeout(e.Soon).Should(Equal(budget))
		e.Expect(e.writes()).To(HaveEach(HaveField("UserAgent", HavePrefix("foo-controller/"+e.implementation+" ("))))
		e.t.Logf("create to Ready: %.2f writes for each of %d Foos", float64(len(e.writes()))/many, many)
		e.Consistently(writes).WithTimeout(3*time.Second).WithPolling(200*time.Millisecond).
			Should(Equal(budget), "nothing is written in steady state")

		running.Stop(e.t)
		e.start()
		// A change that is reconciled shows that the operator is running.
		e.change(foos[0], func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		e.expect(foos[0], metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		e.expectWritesOfOneChange(4*many, "after a restart only the Deployment and the status of the change")
	})
}

// expectWritesOfOneChange asserts that all writes but the first ones, by their number, are a Deployment and a status. A status can
// be read a moment before the audit log has its write.
func (e *operatorEnv) expectWritesOfOneChange(before int, what string) {
	e.t.Helper()
	writes := func() map[string]int { return count(e.writes()[before:]) }
	change := map[string]int{"patch deployments / 200": 1, "patch foos/status / 200": 1}
	e.Eventually(writes).WithTimeout(e.Soon).Should(Equal(change), what)
	e.Consistently(writes).WithTimeout(2*time.Second).WithPolling(200*time.Millisecond).Should(Equal(change), what)
}

// After a restart nothing is written for a Foo that has not changed, whatever its state is.
func TestRestartWritesNothingInAnyState(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		running := e.start()
		ready := e.createReady("ready", "ready")
		e.expect(e.create("rolling-out", "rolling-out"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		zero := e.foo("zero", "zero", new(int32(0)))
		e.Expect(e.Client.Create(e.ctx, zero)).To(Succeed())
		e.expectAvailable(zero, 0)
		e.createNotOwned("taken", nil)
		e.expect(e.create("conflict", "taken"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		e.forbidDeployments()
		stalled := e.create("stalled", "stalled")
		e.expectStalled(stalled)
		e.expectEvents(stalled, applyFailed, retriesExhausted)
		running.Stop(e.t)
		before := len(e.writes())

		e.start()
		e.change(ready, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		e.expect(ready, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		e.expectWritesOfOneChange(before, "after a restart only the Deployment and the status of the change")
	})
}

// The operator stops during rollouts, and Foos and Deployments change while it is not running. After a restart the actual state
// becomes the desired one.
func TestChangesWhileTheOperatorIsNotRunning(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		running := e.start()
		changed, renamed, deleted := e.create("changed", "changed"), e.create("renamed", "old"), e.create("deleted", "deleted")
		for _, f := range []*v1alpha1.Foo{changed, renamed, deleted} {
			e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		}
		running.Stop(e.t)
		before := len(e.writes())

		e.rollOut("changed")
		e.change(changed, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(3)) })
		e.change(renamed, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "new" })
		e.delete(e.deployment("deleted"))
		e.delete(deleted)
		created := e.create("created", "created")
		e.Consistently(e.writes).Should(HaveLen(before), "no operator is running")

		old := e.deployment("old")
		e.start()
		e.expectAvailable(changed, 3)
		e.expectAvailable(renamed, 1)
		e.expectGone(old)
		e.expectAvailable(created, 1)
		e.Expect(slices.ContainsFunc(e.writes()[before:], about("deleted"))).To(BeFalse(),
			"nothing is written for a Foo that was deleted before")
	})
}

// A rejected Deployment is tried again as often as the options say, and not after a restart.
func TestNumberOfRetries(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		const retries = 5
		e.forbidDeployments()
		running := e.start(func(o *operator.Options) { o.MaxRetries = retries })
		f := e.create("web", "web-server")
		e.expectStalled(f)
		e.expectEvents(f, applyFailed, retriesExhausted)
		e.Eventually(func() map[string]int { return count(e.writes()) }).WithTimeout(e.Soon).Should(Equal(map[string]int{
			"patch deployments / 403": 1 + retries,
			"patch foos/status / 200": 2,
			"create events / 201":     2,
		}))
		writes := e.writes()
		running.Stop(e.t)

		e.start()
		// Its first try shows that the operator is running.
		e.expect(e.create("other", "other"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		e.Consistently(func() bool {
			later := e.writes()[len(writes):]
			return slices.ContainsFunc(later, about("web")) || slices.ContainsFunc(later, about("web-server"))
		}).WithTimeout(time.Second).Should(BeFalse())
		e.expectStalled(f)
	})
}

// about reports whether a write was to an object of a name.
func about(name string) func(inprocess.Write) bool {
	return func(write inprocess.Write) bool { return write.Name == name }
}

// A rejected Deployment becomes Ready without a change of the spec if a try succeeds before the retries are exhausted.
func TestRejectionThatEnds(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		quota := e.forbidDeployments()
		e.start(func(o *operator.Options) { o.MaxRetries = 1000 })
		f := e.create("web", "web-server")
		e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		e.delete(quota)
		e.expectAvailable(f, 1)
		e.expectEvents(f, applyFailed, available)
	})
}

// Events of a Foo whose Deployment is rejected trigger no try before it is due.
func TestEventsDoNotUseUpTries(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		e.forbidDeployments()
		e.start(func(o *operator.Options) { o.MaxRetries = 1000 })
		f := e.create("web", "web-server")
		e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		for i := range 100 {
			update(e.scenarioRun, f, func(f *v1alpha1.Foo) { f.Annotations = map[string]string{"touched": fmt.Sprint(i)} })
		}
		wait := foo.FirstRetry
		var before time.Time
		for _, write := range e.writes() {
			if write.Resource != "deployments" {
				continue
			}
			if !before.IsZero() {
				e.Expect(write.Received.Sub(before)).To(BeNumerically(">=", wait))
				wait = min(2*wait, foo.LongestRetry)
			}
			before = write.Responded
		}
		e.Expect(wait).To(BeNumerically(">", 4*foo.FirstRetry), "there were more than two tries")
	})
}

// Two Foos with one deploymentName exist when the operator starts, and are reconciled at once. One gets the Deployment; the other
// reports a NameConflict, and nothing else.
func TestTwoFoosWithOneDeploymentNameAtTheStart(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		const pairs = 10
		for i := range pairs {
			name := fmt.Sprintf("web-%d", i)
			e.create(name+"-a", name)
			e.create(name+"-b", name)
		}
		e.start(func(o *operator.Options) { o.Workers = 2 * pairs })
		for i := range pairs {
			name := fmt.Sprintf("web-%d", i)
			foos := []*v1alpha1.Foo{e.foo(name+"-a", name, nil), e.foo(name+"-b", name, nil)}
			var reasons []string
			e.soon(func(g Gomega) {
				reasons = nil
				for _, f := range foos {
					e.get(g, f)
					reasons = append(reasons, foo.ReadyOf(f.Status).Reason)
				}
				g.Expect(reasons).To(ConsistOf(v1alpha1.ReasonRollingOut, v1alpha1.ReasonNameConflict))
			})
			loser := foos[slices.Index(reasons, v1alpha1.ReasonNameConflict)]
			e.soon(func(g Gomega) { g.Expect(e.events(g, loser)).To(Equal([]string{nameConflict})) })
		}
		e.Expect(count(e.writes())["create events / 201"]).To(Equal(pairs))
	})
}
