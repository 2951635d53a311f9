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

// Per Foo, from its creation until it is Ready: one Deployment, two status writes, one Event. Then, at rest,
// nothing; and nothing after a restart.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			const many = 20
			w := newTrial(t, implementation)
			running := w.start()
			var foos []*v1alpha1.Foo
			for i := range many {
				name := fmt.Sprintf("foo-%02d", i)
				foos = append(foos, w.create(name, name))
			}
			for _, f := range foos {
				w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
				w.expectAvailable(f, 1)
			}
			writes := func() map[string]int { return count(w.writes()) }
			budget := map[string]int{
				"patch deployments / 201": many,
				"patch foos/status / 200": 2 * many,
				"create events / 201":     many,
			}
			w.Eventually(writes).WithTimeout(w.Soon).Should(Equal(budget))
			w.Expect(w.writes()).To(HaveEach(HaveField("UserAgent", HavePrefix("foo-controller/"+implementation+" ("))))
			t.Logf("create to Ready: %.2f writes for each of %d Foos", float64(len(w.writes()))/many, many)
			w.Consistently(writes).WithTimeout(3*time.Second).WithPolling(200*time.Millisecond).
				Should(Equal(budget), "nothing is written at rest")

			running.Stop(t)
			w.start()
			// A change that is handled shows that the operator is up.
			w.change(foos[0], func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
			w.expect(foos[0], metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			w.Consistently(func() map[string]int { return count(w.writes()[4*many:]) }).
				WithTimeout(2*time.Second).WithPolling(200*time.Millisecond).
				Should(Equal(map[string]int{"patch deployments / 200": 1, "patch foos/status / 200": 1}),
					"after a restart only what was asked for: a Deployment and a status")
		})
	}
}

// Whatever state a Foo is in, an operator that starts finds nothing to write if nothing has changed.
func TestRestartWritesNothingInAnyState(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			running := w.start()
			ready := w.createReady("ready", "ready")
			w.expect(w.create("rolling-out", "rolling-out"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			zero := w.foo("zero", "zero", new(int32(0)))
			w.Expect(w.Client.Create(w.ctx, zero)).To(Succeed())
			w.expectAvailable(zero, 0)
			w.createForeign("taken", nil)
			w.expect(w.create("conflict", "taken"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.forbidDeployments()
			stalled := w.create("stalled", "stalled")
			w.expectStalled(stalled)
			w.expectEvents(stalled, applyFailed, retriesExhausted)
			running.Stop(t)
			before := len(w.writes())

			w.start()
			w.change(ready, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
			w.expect(ready, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			w.Consistently(func() map[string]int { return count(w.writes()[before:]) }).
				WithTimeout(2 * time.Second).WithPolling(200 * time.Millisecond).
				Should(Equal(map[string]int{"patch deployments / 200": 1, "patch foos/status / 200": 1}))
		})
	}
}

// The operator ends in the middle of a rollout, and the world goes on without it. What comes after takes it
// from there.
func TestRestartInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			running := w.start()
			changed, renamed, deleted := w.create("changed", "changed"), w.create("renamed", "old"), w.create("deleted", "deleted")
			for _, f := range []*v1alpha1.Foo{changed, renamed, deleted} {
				w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
			}
			running.Stop(t)
			before := len(w.writes())

			w.rollOut("changed")
			w.change(changed, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(3)) })
			w.change(renamed, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "new" })
			w.delete(w.deployment("deleted"))
			w.delete(deleted)
			created := w.create("created", "created")
			w.Consistently(w.writes).Should(HaveLen(before), "nobody is there")

			old := w.deployment("old")
			w.start()
			w.expectAvailable(changed, 3)
			w.expectAvailable(renamed, 1)
			w.expectGone(old)
			w.expectAvailable(created, 1)
			w.Expect(slices.ContainsFunc(w.writes()[before:], about("deleted"))).To(BeFalse(),
				"a Foo that went while nobody was there is nobody's business")
		})
	}
}

// A refusal is tried again as often as the options say, and no more: not after a restart either.
func TestRefusalIsTriedAsOftenAsToldAlsoOverARestart(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			const retries = 5
			w := newTrial(t, implementation)
			w.forbidDeployments()
			running := w.start(func(o *operator.Options) { o.MaxRetries = retries })
			f := w.create("web", "web-server")
			w.expectStalled(f)
			w.expectEvents(f, applyFailed, retriesExhausted)
			writes := w.writes()
			w.Expect(count(writes)).To(Equal(map[string]int{
				"patch deployments / 403": 1 + retries,
				"patch foos/status / 200": 2,
				"create events / 201":     2,
			}))
			running.Stop(t)

			w.start()
			// Its first try shows that the operator is up.
			w.expect(w.create("other", "other"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
			w.Consistently(func() bool {
				later := w.writes()[len(writes):]
				return slices.ContainsFunc(later, about("web")) || slices.ContainsFunc(later, about("web-server"))
			}).WithTimeout(time.Second).Should(BeFalse())
			w.expectStalled(f)
		})
	}
}

// about tells of a write whether it was to an object of that name.
func about(name string) func(inprocess.Write) bool {
	return func(write inprocess.Write) bool { return write.Name == name }
}

// A refusal whose cause goes while the operator still tries heals without a change to the spec.
func TestRefusalThatPassesHeals(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			quota := w.forbidDeployments()
			w.start(func(o *operator.Options) { o.MaxRetries = 1000 })
			f := w.create("web", "web-server")
			w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
			w.delete(quota)
			w.expectAvailable(f, 1)
			w.expectEvents(f, applyFailed, available)
		})
	}
}

// However often somebody touches a Foo that is refused, it is tried no more often than its pace allows.
func TestTouchesDoNotUseUpTries(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			w.forbidDeployments()
			w.start(func(o *operator.Options) { o.MaxRetries = 1000 })
			f := w.create("web", "web-server")
			w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
			for i := range 100 {
				update(w.story, f, func(f *v1alpha1.Foo) { f.Annotations = map[string]string{"touched": fmt.Sprint(i)} })
			}
			pause := foo.FirstRetry
			var before time.Time
			for _, write := range w.writes() {
				if write.Resource != "deployments" {
					continue
				}
				if !before.IsZero() {
					w.Expect(write.Received.Sub(before)).To(BeNumerically(">=", pause))
					pause = min(2*pause, foo.LongestRetry)
				}
				before = write.Answered
			}
			w.Expect(pause).To(BeNumerically(">", 4*foo.FirstRetry), "there were more than two tries")
		})
	}
}

// Of two Foos of one name that are there when the operator starts, both find it free, at the same moment. One
// gets it; for the other it is a conflict, and nothing else is told.
func TestTwoFoosOfOneNameFoundAtTheStart(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			const pairs = 10
			w := newTrial(t, implementation)
			for i := range pairs {
				name := fmt.Sprintf("web-%d", i)
				w.create(name+"-a", name)
				w.create(name+"-b", name)
			}
			w.start(func(o *operator.Options) { o.Workers = 2 * pairs })
			for i := range pairs {
				name := fmt.Sprintf("web-%d", i)
				foos := []*v1alpha1.Foo{w.foo(name+"-a", name, nil), w.foo(name+"-b", name, nil)}
				var reasons []string
				w.soon(func(g Gomega) {
					reasons = nil
					for _, f := range foos {
						w.look(g, f)
						reasons = append(reasons, foo.ReadyOf(f.Status).Reason)
					}
					g.Expect(reasons).To(ConsistOf(v1alpha1.ReasonRollingOut, v1alpha1.ReasonNameConflict))
				})
				loser := foos[slices.Index(reasons, v1alpha1.ReasonNameConflict)]
				w.soon(func(g Gomega) { g.Expect(w.events(g, loser)).To(Equal([]string{nameConflict})) })
			}
			w.Expect(count(w.writes())["create events / 201"]).To(Equal(pairs))
		})
	}
}
