package faults

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Action is what an operation does. What is not there any more is left alone: another operation may have deleted it.
type Action = func(context.Context, *State) error

// Sequence does one thing after another, until one fails.
func Sequence(actions ...Action) Action {
	return func(ctx context.Context, s *State) error {
		for _, one := range actions {
			if err := one(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// Edit changes the object of a name.
func Edit[T any, P interface {
	*T
	client.Object
}](name string, mutate func(P)) Action {
	return func(ctx context.Context, s *State) error {
		return client.IgnoreNotFound(Change(ctx, s, name, mutate))
	}
}

// Delete deletes the object of a name, as kubectl does.
func Delete[T any, P interface {
	*T
	client.Object
}](name string, mode metav1.DeletionPropagation) Action {
	return func(ctx context.Context, s *State) error {
		object := P(new(T))
		object.SetNamespace(s.Namespace)
		object.SetName(name)
		return client.IgnoreNotFound(s.Client.Delete(ctx, object, client.PropagationPolicy(mode)))
	}
}

// DeleteUnowned deletes the object of a name, unless it has a controller.
func DeleteUnowned[T any, P interface {
	*T
	client.Object
}](name string) Action {
	return func(ctx context.Context, s *State) error {
		object, err := Find[T, P](s, name)
		if err != nil || object == nil || metav1.GetControllerOf(object) != nil {
			return err
		}
		return client.IgnoreNotFound(s.Client.Delete(ctx, object))
	}
}

// IgnoreExisting is an action that may create what another operation has created.
func IgnoreExisting(do Action) Action {
	return func(ctx context.Context, s *State) error { return client.IgnoreAlreadyExists(do(ctx, s)) }
}
