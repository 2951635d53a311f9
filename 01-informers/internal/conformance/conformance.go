// Package conformance tests what every implementation of the Foo controller has to do. Its scenarios see only what a user of
// the cluster sees. So one suite is for both implementations, in the process of a test with a bare API server as well as in a
// cluster.
//
// Package inprocess starts an implementation inside a test.
package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Env is the environment of one scenario. An operator runs there.
type Env struct {
	// Client reads and writes as an administrator, without a cache. Its scheme has Foo and Kubernetes' own kinds.
	Client client.Client
	// Namespace is an empty one, for this scenario alone.
	Namespace string

	// RollOut simulates the Deployment controller and the kubelets where none of Kubernetes' controllers runs: every replica of
	// the Deployment's present generation is available. It is nil where they run, and the garbage collector and the quota
	// controller with them.
	RollOut func(ctx context.Context, deployment client.ObjectKey) error

	// Soon bounds the wait for what must happen, for instance for pods to be available, where they run.
	Soon time.Duration
	// SteadyState is how long a scenario checks that something does not happen.
	SteadyState time.Duration
	// Interval is the time between two checks, each of which is a request. In a cluster it shares the machine with what it
	// waits for.
	Interval time.Duration
	// StalledWithin bounds the time from the first rejection until the Foo is Stalled. It depends on the flag --max-retries:
	// with 15 it is two and a half minutes, with 5 less than a second.
	StalledWithin time.Duration
}

// Scenario is one thing that an operator has to do.
type Scenario struct {
	// Name is the end of a sentence that begins with "The operator".
	Name string
	run  func(s *scenarioRun)
}

// Run runs the scenario. It asserts with g, which ends the test at the first failure.
func (s Scenario) Run(ctx context.Context, g gomega.Gomega, env *Env) {
	s.run(&scenarioRun{Gomega: g, Env: env, ctx: ctx})
}

// Scenarios returns those for any Env. They may run in parallel, each in a namespace of its own.
func Scenarios() []Scenario {
	return slices.Concat(lifeScenarios, conflictScenarios, repairScenarios, rejectionScenarios, inputScenarios)
}
