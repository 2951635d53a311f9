package actors

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// GarbageCollector deletes objects all of whose owners are gone, and serves the finalizers by which an owner is deleted
// after its dependents, or without them.
type GarbageCollector struct{}

// Name is that of the controller.
func (GarbageCollector) Name() string { return "garbage-collector" }

// Act makes one step.
func (GarbageCollector) Act(ctx context.Context, w *faults.State) (bool, error) {
	objects := faults.Everything(w)
	there := map[types.UID]bool{}
	for _, one := range objects {
		there[one.GetUID()] = true
	}
	for _, one := range objects {
		owners := one.GetOwnerReferences()
		gone := !slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return there[owner.UID] })
		if len(owners) > 0 && gone && one.GetDeletionTimestamp() == nil {
			return true, client.IgnoreNotFound(w.Client.Delete(ctx, one.DeepCopyObject().(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}
		if one.GetDeletionTimestamp() == nil {
			continue
		}
		if acted, err := finalize(ctx, w, one, objects); acted || err != nil {
			return acted, err
		}
	}
	return false, nil
}

// finalize serves the finalizers of the garbage collector of an object that is being deleted.
func finalize(ctx context.Context, w *faults.State, owner client.Object, objects []client.Object) (bool, error) {
	finalizers := owner.GetFinalizers()
	foreground := slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	orphan := slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
	if !foreground && !orphan {
		return false, nil
	}
	blocked := false
	for _, one := range objects {
		owners := one.GetOwnerReferences()
		at := slices.IndexFunc(owners, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
		if at < 0 {
			continue
		}
		if orphan {
			changed := one.DeepCopyObject().(client.Object)
			changed.SetOwnerReferences(slices.Delete(slices.Clone(owners), at, at+1))
			return true, w.Client.Update(ctx, changed)
		}
		if one.GetDeletionTimestamp() == nil {
			return true, client.IgnoreNotFound(w.Client.Delete(ctx, one.DeepCopyObject().(client.Object), client.PropagationPolicy(propagation(one, objects))))
		}
		blocked = blocked || ptr.Deref(owners[at].BlockOwnerDeletion, false)
	}
	if blocked {
		return false, nil
	}
	changed := owner.DeepCopyObject().(client.Object)
	changed.SetFinalizers(slices.DeleteFunc(slices.Clone(finalizers), func(one string) bool {
		return one == metav1.FinalizerDeleteDependents || one == metav1.FinalizerOrphanDependents
	}))
	return true, w.Client.Update(ctx, changed)
}

// propagation is how an object is deleted whose owner is deleted in the foreground: so too, if it has dependents itself.
func propagation(object client.Object, objects []client.Object) metav1.DeletionPropagation {
	for _, one := range objects {
		if slices.ContainsFunc(one.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == object.GetUID() }) {
			return metav1.DeletePropagationForeground
		}
	}
	return metav1.DeletePropagationBackground
}
