package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Deletion is a way to delete an object, and what comes of it with the garbage collector and the controllers of the cluster.
type Deletion struct {
	// Name says what is deleted, how, and with which outcome.
	Name string
	// Begin creates the objects, in a namespace of their own, without waiting for them.
	Begin func(ginkgo.SpecContext) DeletionSteps
	// OnlyUp and OnlyDown are for deletions whose outcome depends on whether the operator observes them.
	OnlyUp, OnlyDown bool
}

// DeletionSteps are the steps of a Deletion, in their order.
type DeletionSteps struct {
	// Reach waits until the objects are in the state in which they are deleted.
	Reach func()
	// Delete deletes.
	Delete func()
	// Collect waits until the garbage collector has done what it does without the operator.
	Collect func()
	// Expect asserts the outcome, with the operator running.
	Expect func()
}

// Deletions declares a spec for each deletion, with the operator running, and one in which all objects are deleted while
// it is stopped. It is started again when the garbage collector is done with one half of them, and is just being given
// the other half. On a cluster that runs containers there is only the first half: the pods of both are too many.
func Deletions(env *Env, deletions []Deletion) {
	for _, deletion := range deletions {
		if deletion.OnlyDown {
			continue
		}
		ginkgo.It(deletion.Name, func(ctx ginkgo.SpecContext) {
			steps := deletion.Begin(ctx)
			steps.Reach()
			steps.Delete()
			steps.Expect()
		})
	}
	ginkgo.It("has the same outcomes if the operator is down, and starts when all are collected, or while they are", ginkgo.Serial, func(ctx ginkgo.SpecContext) {
		whileDown(ctx, env, deletions)
	})
}

func whileDown(ctx ginkgo.SpecContext, env *Env, deletions []Deletion) {
	ginkgo.GinkgoHelper()
	begin := func(when string) (all []begun) {
		for _, deletion := range deletions {
			if !deletion.OnlyUp {
				all = append(all, begun{deletion.Name + ", " + when, deletion.Begin(ctx)})
			}
		}
		return all
	}
	early := begin("with the operator back when all are collected")
	var late []begun
	if !env.Cluster.RunsContainers() {
		late = begin("with the operator back while they are collected")
	}
	all := append(append([]begun{}, early...), late...)

	ginkgo.By("reaching their states")
	atOnce(all, func(s DeletionSteps) { s.Reach() })
	ginkgo.By("deleting them while the operator is stopped")
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		gomega.Expect(env.Operator.Start(ctx)).To(gomega.Succeed())
	})
	gomega.Expect(env.Operator.Stop(ctx)).To(gomega.Succeed())
	atOnce(early, func(s DeletionSteps) { s.Delete(); s.Collect() })
	atOnce(late, func(s DeletionSteps) { s.Delete() })
	ginkgo.By("expecting the outcomes")
	gomega.Expect(env.Operator.Start(ctx)).To(gomega.Succeed())
	atOnce(all, func(s DeletionSteps) { s.Expect() })
}

// begun is a deletion whose objects exist.
type begun struct {
	name  string
	steps DeletionSteps
}

// atOnce takes one step of each deletion, all at once, and ends the spec if one of them fails.
func atOnce(all []begun, step func(DeletionSteps)) {
	ginkgo.GinkgoHelper()
	var wait sync.WaitGroup
	var failed atomic.Int32
	for _, one := range all {
		wait.Go(func() {
			// The failures are those of the one spec: they do not say which deletion it was.
			passed := false
			defer func() {
				if !passed {
					failed.Add(1)
					fmt.Fprintf(ginkgo.GinkgoWriter, "failed: %s\n", one.name)
				}
			}()
			defer ginkgo.GinkgoRecover()
			step(one.steps)
			passed = true
		})
	}
	wait.Wait()
	gomega.Expect(failed.Load()).To(gomega.BeZero(), "deletions that fail are named above")
}
