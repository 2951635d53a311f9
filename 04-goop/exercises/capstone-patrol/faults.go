package patrol

import (
	"fmt"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// changes is how often nodes change while nothing is to be done.
const changes = 20

// quiet checks that what is done meanwhile causes no write, and hardly a list. It is done several times if the last writes of what was
// before may still come.
func (c *cluster) quiet(what string, times int, meanwhile func()) {
	for ; ; times-- {
		before := len(c.process.Wire.Requests())
		meanwhile()
		text := noise(c.process.Wire.Requests()[before:])
		if text == "" {
			return
		}
		if times == 1 {
			c.b.Fatalf("%s, and %s", what, text)
		}
	}
}

// noise says what should not have been sent, or returns an empty string.
func noise(requests []kube.Request) string {
	lists := 0
	for _, request := range requests {
		switch {
		case kube.Writes(request):
			return "this was sent: " + request.Verb + " " + request.Resource
		case request.Verb == "list":
			lists++
		}
	}
	if lists >= changes {
		return fmt.Sprintf("nodes have changed %d times, and as many lists were read, or more", changes)
	}
	return ""
}

// faults checks what is done in steady state, and when requests fail.
func faults(t *check.T, entry Entry) {
	t.Behaviour("when nothing is to be done, nothing is written, and lists are not read again", func(b *check.B) {
		c := started(b, entry)
		c.is(patrols.ReasonRunning)
		// The Job is in the cache of the operator once this has happened.
		c.suspend(true)
		c.is(patrols.ReasonSuspended)
		c.suspend(false)
		c.is(patrols.ReasonRunning)
		c.quiet("a command runs", 3, func() { c.touch("b", changes) })
		c.let("a")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.settle()
		c.quiet("all is done", 3, func() { c.touch("a", changes) })
		c.process = c.operator.Restart()
		c.quiet("all is done, and the operator has started again", 1, func() {
			c.eventually(func() string {
				if c.process.Wire.OpenWatches() < 3 {
					return "the operator does not watch Patrols, Jobs and nodes"
				}
				return ""
			})
			c.touch("a", 3)
		})
	})
	t.Behaviour("requests that fail are sent again", func(b *check.B) {
		c := newCluster(b, entry)
		var failed atomic.Int64
		c.intercept(func(request kube.Request) error {
			if kube.Writes(request) && failed.Add(1)%2 == 1 && failed.Load() < 20 {
				return kube.ErrAway
			}
			return nil
		})
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.remove("p")
		c.gone()
	})
}

// crashes checks that each node has one turn, whatever write the process crashes at. The state before a write is the state
// after the write before it, so the longer stories crash after writes only.
func crashes(t *check.T, entry Entry) {
	each := func(b *check.B, after bool, story func(c *cluster)) {
		for number, more := 1, true; more; number++ {
			b.Event("the story anew: a crash at write %d, after it took effect: %t", number, after)
			c := newCluster(b, entry)
			c.operator.CrashWrite, c.operator.CrashAfter = number, after
			story(c)
			c.tend()
			more = c.operator.Crashed
			c.operator.Stop()
			c.clear()
		}
	}
	for _, one := range []struct {
		name  string
		after bool
	}{{"before", false}, {"after", true}} {
		t.Behaviour("at whichever write it crashes, "+one.name+" it takes effect, the command runs once on each node", func(b *check.B) {
			each(b, one.after, func(c *cluster) {
				c.leave("c")
				c.cordon("b")
				c.failing["b"] = true
				c.start()
				c.patrol("p", nil)
				c.running("a")
				c.running("b")
				c.failed("a Succeeded", "b Failed")
				c.order("a", "b")
			})
		})
	}
	t.Behaviour("at whichever write it crashes, a Patrol that is deleted before the restart leaves nothing", func(b *check.B) {
		each(b, true, func(c *cluster) {
			removed := false
			remove := func() {
				if !removed {
					removed = true
					c.remove("p")
				}
			}
			c.operator.WhileDown = func() {
				c.work()
				remove()
			}
			c.leave("c")
			c.start()
			c.patrol("p", nil)
			c.eventually(func() string {
				if !c.operator.Crashed {
					return c.report("p", patrols.ConditionComplete, "True", patrols.ReasonDone)
				}
				return ""
			})
			remove()
			c.gone()
		})
	})
	t.Behaviour("at whichever write it crashes, a Job that is deleted before the restart is not created again", func(b *check.B) {
		each(b, true, func(c *cluster) {
			c.operator.WhileDown = func() {
				c.work()
				for _, job := range c.jobs() {
					c.deleteJob(&job)
				}
			}
			c.leave("b")
			c.leave("c")
			c.start()
			c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
			c.eventually(func() string { return c.report("p", patrols.ConditionComplete, "True", patrols.ReasonDone) })
			c.order("a")
			c.uncordonedAll("")
		})
	})
}

// caches checks it with a cache that is behind.
func caches(t *check.T, entry Entry) {
	for _, resource := range []string{"patrols", "jobs", "nodes"} {
		t.Behaviour("a cache whose watch of "+resource+" is silent does no harm", func(b *check.B) {
			c := newCluster(b, entry)
			c.hold("b")
			c.start()
			c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
			c.is(patrols.ReasonRunning)
			c.process.Wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == resource })
			c.stir()
			c.process.Wire.CutWatches()
			c.process.Wire.Release()
			c.let("b")
			c.eventually(func() string { return c.report("p", patrols.ConditionComplete, "True", patrols.ReasonDone) })
			c.uncordonedAll("")
			c.order("a", "b", "c")
		})
	}
	t.Behaviour("a Patrol whose deletion the cache has not noticed begins no other node", func(b *check.B) {
		c := started(b, entry)
		c.hold("b")
		c.process.Wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "patrols" })
		c.remove("p")
		c.let("a")
		c.stir()
		c.order("a")
		c.process.Wire.CutWatches()
		c.process.Wire.Release()
		c.gone()
	})
}

// stir lets happen what happens, and deletes the Job of a once its result is in the status, as a user. An operator may also do nothing
// while its cache is behind.
func (c *cluster) stir() {
	round := func(n int) {
		c.tend()
		c.touch("other", 1)
		c.touchJobs(n)
	}
	for n, end := 0, time.Now().Add(c.b.Patience(patience/4)); time.Now().Before(end); n++ {
		round(n)
		patrol, job := c.get("p"), c.job()
		if patrol != nil && len(patrol.Status.Nodes) > 0 && job != nil {
			c.deleteJob(job)
			break
		}
	}
	for n := range changes {
		round(-n)
	}
}

// touchJobs changes what the operator has no interest in, so that it looks at the Patrol of the Jobs.
func (c *cluster) touchJobs(n int) {
	for _, job := range c.jobs() {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/round":"round%d"}}}`, n)
		c.must("changing a Job", client.IgnoreNotFound(c.client.Patch(c.b.Context(), &batchv1.Job{ObjectMeta: job.ObjectMeta},
			client.RawPatch("application/merge-patch+json", patch))))
	}
}
