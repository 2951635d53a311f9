// Package conformance holds an implementation of the Foo controller to what Foo promises. It sees only what
// a user of the cluster sees, so one suite serves both implementations, in a test's process against a bare
// API server as well as deployed into a cluster.
//
// Package inprocess, below, starts an implementation inside a test.
package conformance

import (
	"context"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// World is where one scenario takes place. An operator is at work there.
type World struct {
	// Client reads and writes as an administrator, past any cache. Its scheme knows Foo and Kubernetes' own
	// kinds.
	Client client.Client
	// Namespace is an empty one, for this scenario alone.
	Namespace string

	// RollOut plays Kubernetes' Deployment controller, and all that is below it, where none of Kubernetes'
	// controllers runs: every replica of the Deployment's present generation is there and available. nil:
	// they run, and the garbage collector and the quota controller with them.
	RollOut func(ctx context.Context, deployment client.ObjectKey) error

	// Soon is how long to wait for what must happen: for pods to be available, where they are real.
	Soon time.Duration
	// AtRest is how long to watch that something does not happen.
	AtRest time.Duration
	// StalledWithin is how long it takes from the first refusal until the operator gives up, at most. It
	// follows from the flag --max-retries: with 15 it is two and a half minutes, with 5 less than a second.
	StalledWithin time.Duration
}

// Scenario is one thing that Foo promises.
type Scenario struct {
	// Name reads as the end of a sentence that begins with "The operator".
	Name string
	// Run lives through it and asserts with g, which ends the test at the first thing that is not so.
	Run func(ctx context.Context, g gomega.Gomega, w *World)
}

// Scenarios returns those for any World. They may run side by side, each in a namespace of its own.
func Scenarios() []Scenario {
	return export(lifeScenarios, conflictScenarios, repairScenarios, refusalScenarios, inputScenarios)
}

// ByHand returns some more for a World with RollOut: in these the Deployment controller does what no real one
// would.
func ByHand() []Scenario { return export(byHandScenarios) }

type scenario struct {
	name string
	run  func(s *story)
}

func export(groups ...[]scenario) []Scenario {
	var all []Scenario
	for _, group := range groups {
		for _, one := range group {
			all = append(all, Scenario{Name: one.name, Run: func(ctx context.Context, g gomega.Gomega, w *World) {
				one.run(&story{Gomega: g, World: w, ctx: ctx})
			}})
		}
	}
	return all
}
