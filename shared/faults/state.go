package faults

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// State is what operations, actors and invariants are given: one namespace of the API server.
type State struct {
	// Client reads and writes at the API server, as the user or the actor whose turn it is.
	Client    client.Client
	Namespace string
	Clock     *testclock.FakeClock
	// Steady is true when nothing is left to do, neither for the operator nor for the actors.
	Steady bool
	// Last is the write that was just made. It has no verb before the first one.
	Last Write

	trial *trial
	taken []int32
}

// Write is a write that had an effect.
type Write struct {
	By       string // "operator", "user", or the name of an actor
	Verb     string // the HTTP method
	Resource schema.GroupResource
	Name     string
	// Before and After are the object; nil if it was not there.
	Before, After *unstructured.Unstructured
}

// Port returns a node port that no other schedule uses, the same for the same number: 0 to 3.
func (s *State) Port(number int) (int32, error) {
	if number >= portsOfEach {
		return 0, fmt.Errorf("a schedule has %d node ports, counted from 0, and none has the number %d", portsOfEach, number)
	}
	for len(s.taken) <= number {
		port, err := s.trial.server.ports.take()
		if err != nil {
			return 0, err
		}
		s.taken = append(s.taken, port)
	}
	return s.taken[number], nil
}

// ClusterName is the name of an object of the cluster, such as a node. It begins with the namespace, so that schedules that
// run at once have different ones, and each sees only its own.
func (s *State) ClusterName(name string) string { return clusterName(s.Namespace, name) }

func clusterName(namespace, name string) string { return namespace + "-" + name }

// Writes are all writes that had an effect, the last one included. They are not to be changed.
func (s *State) Writes() []Write { return s.trial.writes }

// Event is one that the operator recorded.
type Event struct{ Type, Reason, On string }

// Events are those that the operator recorded.
func (s *State) Events() []Event { return slices.Clone(s.trial.recorded) }

// Key is the name of an object of this namespace.
func (s *State) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Namespace, Name: name}
}

// All returns the objects of one type, the oldest first, as the API server has them after the last write.
func All[T any, P interface {
	*T
	client.Object
}](s *State) ([]P, error) {
	gvk, err := apiutil.GVKForObject(P(new(T)), s.Client.Scheme())
	if err != nil {
		return nil, err
	}
	resource, err := s.trial.server.hub.resourceOf(gvk)
	if err != nil {
		return nil, err
	}
	var all []P
	for _, object := range s.trial.server.hub.live(s.Namespace, resource) {
		typed, err := As[T, P](s, object)
		if err != nil {
			return nil, err
		}
		all = append(all, typed.DeepCopyObject().(P))
	}
	return all, nil
}

// As returns an object by its type; nil if there is none. It is read once, and not to be changed.
func As[T any, P interface {
	*T
	client.Object
}](s *State, object *unstructured.Unstructured) (P, error) {
	if object == nil {
		return nil, nil
	}
	if known, ok := s.trial.typed[object].(P); ok {
		return known, nil
	}
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	s.trial.typed[object] = typed
	return typed, nil
}

// Of returns the object of a write, before and after it, if it is of this type; nil if it is not, or was not there. It is not
// to be changed.
func Of[T any, P interface {
	*T
	client.Object
}](s *State, w Write) (before, after P, err error) {
	gvk, err := apiutil.GVKForObject(P(new(T)), s.Client.Scheme())
	if err != nil {
		return nil, nil, err
	}
	if resource, err := s.trial.server.hub.resourceOf(gvk); err != nil || resource != w.Resource {
		return nil, nil, err
	}
	if before, err = As[T, P](s, w.Before); err != nil {
		return nil, nil, err
	}
	after, err = As[T, P](s, w.After)
	return before, after, err
}

// Everything returns all objects of the kinds that are watched, the oldest of each kind first. They are not to be changed.
func Everything(s *State) []client.Object {
	var all []client.Object
	for _, resource := range s.trial.server.hub.resources() {
		for _, object := range s.trial.server.hub.live(s.Namespace, resource) {
			all = append(all, object)
		}
	}
	return all
}

// Find returns the object of a name, nil if there is none.
func Find[T any, P interface {
	*T
	client.Object
}](s *State, name string) (P, error) {
	all, err := All[T, P](s)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.GetName() == name {
			return one, nil
		}
	}
	return nil, nil
}

// Change reads an object, changes it and writes it.
func Change[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *State, name string, mutate func(P)) error {
	object := P(new(T))
	if err := s.Client.Get(ctx, s.Key(name), object); err != nil {
		return err
	}
	mutate(object)
	return s.Client.Update(ctx, object)
}

// Owned is the invariant that the operator writes objects of its own kinds, given by one of each, and what one of them
// is the controller of, and nothing else.
func Owned(kinds ...client.Object) Invariant {
	return Invariant{Name: "the operator writes only what is its own", Check: func(_ context.Context, s *State) error {
		before := s.Last.Before
		if s.Last.By != operatorName || before == nil {
			return nil
		}
		own := func(apiVersion, kind string) bool {
			return slices.ContainsFunc(kinds, func(one client.Object) bool {
				gvk, err := apiutil.GVKForObject(one, s.Client.Scheme())
				return err == nil && gvk.Kind == kind && gvk.GroupVersion().String() == apiVersion
			})
		}
		if own(before.GetAPIVersion(), before.GetKind()) {
			return nil
		}
		if owner := metav1.GetControllerOf(before); owner != nil && own(owner.APIVersion, owner.Kind) {
			return nil
		}
		return fmt.Errorf("%s of %s %s, which none of its objects owns", s.Last.Verb, s.Last.Resource, s.Last.Name)
	}}
}

func metaNamed(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
