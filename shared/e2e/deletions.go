package e2e

import (
	"maps"

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
	begin := func(when string) map[string]DeletionSteps {
		all := map[string]DeletionSteps{}
		for _, deletion := range deletions {
			if !deletion.OnlyUp {
				all[deletion.Name+", "+when] = deletion.Begin(ctx)
			}
		}
		return all
	}
	early := begin("with the operator back when all are collected")
	late := map[string]DeletionSteps{}
	if !env.Cluster.RunsContainers() {
		late = begin("with the operator back while they are collected")
	}
	all := maps.Clone(early)
	maps.Copy(all, late)

	ginkgo.By("reaching their states")
	AtOnce(all, func(_ string, s DeletionSteps) { s.Reach() })
	ginkgo.By("deleting them while the operator is stopped")
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		gomega.Expect(env.Operator.Start(ctx)).To(gomega.Succeed())
	})
	gomega.Expect(env.Operator.Stop(ctx)).To(gomega.Succeed())
	AtOnce(early, func(_ string, s DeletionSteps) { s.Delete(); s.Collect() })
	AtOnce(late, func(_ string, s DeletionSteps) { s.Delete() })
	ginkgo.By("expecting the outcomes")
	gomega.Expect(env.Operator.Start(ctx)).To(gomega.Succeed())
	AtOnce(all, func(_ string, s DeletionSteps) { s.Expect() })
}
