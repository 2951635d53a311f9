// Package faults finds the bugs of an operator that only a fault shows: a process that ends between two writes, a response
// that is lost, a cache that is behind, an event that never came, another writer.
//
// The operator is the stage's own: its SetupWithManager, its cache options, on a real manager, against a real API server.
// Only four things are not its own: informers deliver an event when the schedule says so, the queue hands out one key at a
// time, the clock is stepped, and requests go through a transport that knows which to fail. So everything that happens
// is decided by a schedule, and a schedule happens again in the same way.
//
// Its files in the order of reading:
//
//	faults.go     what a suite gives
//	run.go        Run: which schedules, how many at once, what is printed
//	hunt.go       a schedule, and what it is compared with
//	generate.go   single faults, random schedules
//	shrink.go     the smallest schedule that still fails
//	replay.go     a schedule as a file
//	trial.go      one schedule, from its first operation to its last comparison
//	settle.go     what happens next
//	notes.go      what has happened: addresses, writes, the timeline, alarms
//	process.go    one process of the operator
//	transport.go  faults of requests
//	deliver.go    faults of watches
//	oracle.go     what is compared at the end; role.go: the permissions
//	normal.go     what differs between any two runs
//	state.go      what operations, actors and invariants are given
//	hub.go        what the API server has, by its own watches
//	server.go     the API server
//
// Package wire, below this one, injects faults into the connection of an operator that is not changed for the test.
package faults

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Env is what an operator is given from outside.
type Env struct {
	Clock    clock.Clock
	Recorder events.EventRecorder
	// Queue are the options that each of its controllers is set up with.
	Queue controller.Options
}

// Operator is what is tested.
type Operator struct {
	Scheme *runtime.Scheme
	// CRDs are folders of CustomResourceDefinitions.
	CRDs  []string
	Cache cache.Options
	// ReadYourWrites says that the operator's client waits until its cache has seen what it wrote.
	ReadYourWrites bool
	// Setup adds the controllers to the manager of one process. It is called for each process.
	Setup func(ctx context.Context, mgr ctrl.Manager, env Env) error
}

// Op is one thing that a user, or another controller, does.
type Op struct {
	Name string
	Do   func(ctx context.Context, s *State) error
}

// Invariant is what holds after every write of anyone. In steady state, when State.Steady is true, it may ask for more.
type Invariant struct {
	Name  string
	Check func(ctx context.Context, s *State) error
}

// Actor is a part of Kubernetes that runs beside the API server. Act makes one step, and reports whether there was one.
type Actor interface {
	Name() string
	Act(ctx context.Context, s *State) (bool, error)
}

// Suite is what is known of one operator.
type Suite struct {
	Operator    Operator
	Kinds, Once []client.Object   // compared; created once only
	Actors      []Actor           // the rest of Kubernetes: package actors
	Story       []Op              // what users do, in order
	Anytime     []Op              // what others may do at any moment
	Invariants  []Invariant       // checked after every write
	Unordered   map[string]string // JSON path of a text whose lines have no order → reason
	Role        string            // role.yaml, compared with the requests
}

// Fault is one thing that goes wrong. On is where: a request, an event or an operation, by what it is, the object
// it is about, and the how manieth of its like: "PATCH deployments/a#2", "MODIFIED services/a#1", "OP change#1".
type Fault struct {
	Kind string `json:"kind"`
	On   string `json:"on"`
	Arg  int    `json:"arg,omitempty"`
}

// Schedule decides everything that happens in one run.
type Schedule struct {
	Suite  string   `json:"suite"`
	Code   string   `json:"code"`
	Seed   uint64   `json:"seed,omitempty"`
	Ops    []string `json:"ops"`
	Faults []Fault  `json:"faults"`
}
