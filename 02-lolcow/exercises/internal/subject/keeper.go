package subject

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
)

// The names of the keepers, by lab.Variable.
const (
	// Named and Listed are right. Named gives its ConfigMap the name of the Lolcow, and has another one, which no Lolcow owns. Listed
	// looks for one that the Lolcow owns.
	Named  = "named"
	Listed = "listed"
	// Remembers has the name of its ConfigMap in memory, and writes it down a request after the creation.
	Remembers = "remembers"
	// Replaces deletes the ConfigMap, and creates another one.
	Replaces = "replaces"
	// Overlaps creates another one, and deletes the first afterwards.
	Overlaps = "overlaps"
	// Reports writes the status first when the Lolcow has changed, and believes it.
	Reports = "reports"
)

// nameOf is where Remembers writes the name down.
const nameOf = "example.com/config-map"

// keeper keeps a ConfigMap for each Lolcow.
type keeper struct {
	client  client.Client
	variant string
	names   map[types.UID]string
}

// NewKeeper returns a new process of the operator of 25c. The check says which operator; without the check, it is one that is right.
func NewKeeper(c client.Client) reconcile.Reconciler {
	return &keeper{c, os.Getenv(lab.Variable), map[types.UID]string{}}
}

// Reconcile makes the ConfigMap what the Lolcow asks for, and says so in the status.
func (k *keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := k.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	kept, err := k.find(ctx, &lolcow)
	if err != nil {
		return reconcile.Result{}, err
	}
	reported := lolcow.Status.ObservedGeneration == lolcow.Generation
	early := k.variant == Reports && kept != nil
	if early {
		if reported {
			return reconcile.Result{}, nil
		}
		if err := k.report(ctx, &lolcow); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := k.write(ctx, &lolcow, kept); err != nil || reported || early {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, k.report(ctx, &lolcow)
}

// find returns the ConfigMap of a Lolcow, or nil.
func (k *keeper) find(ctx context.Context, lolcow *v1alpha1.Lolcow) (*corev1.ConfigMap, error) {
	if k.variant == Listed || k.variant == Overlaps {
		owned, err := k.owned(ctx, lolcow)
		if err != nil || len(owned) == 0 {
			return nil, err
		}
		return &owned[0], nil
	}
	name := lolcow.Name
	if k.variant == Remembers {
		if name = cmp.Or(k.names[lolcow.UID], lolcow.Annotations[nameOf]); name == "" {
			return nil, nil
		}
	}
	var kept corev1.ConfigMap
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: lolcow.Namespace, Name: name}, &kept); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&kept, lolcow) {
		return nil, fmt.Errorf("the ConfigMap %s is not owned by the Lolcow", name)
	}
	return &kept, nil
}

// owned are all ConfigMaps of a Lolcow.
func (k *keeper) owned(ctx context.Context, lolcow *v1alpha1.Lolcow) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	err := k.client.List(ctx, &list, client.InNamespace(lolcow.Namespace))
	return slices.DeleteFunc(list.Items, func(one corev1.ConfigMap) bool { return !metav1.IsControlledBy(&one, lolcow) }), err
}

func (k *keeper) write(ctx context.Context, lolcow *v1alpha1.Lolcow, kept *corev1.ConfigMap) error {
	switch {
	case k.variant == Overlaps:
		return k.overlap(ctx, lolcow)
	case k.variant == Named && kept == nil:
		notes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name + "-notes", Namespace: lolcow.Namespace}}
		if err := k.client.Create(ctx, notes); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	if kept != nil && kept.Data["greeting"] == lolcow.Spec.Greeting {
		return nil
	}
	if kept != nil && k.variant != Replaces {
		kept.Data = map[string]string{"greeting": lolcow.Spec.Greeting}
		return k.client.Update(ctx, kept)
	}
	if kept != nil {
		if err := k.client.Delete(ctx, kept); err != nil {
			return err
		}
	}
	created := k.desired(lolcow)
	if err := k.client.Create(ctx, created); err != nil || k.variant != Remembers {
		return err
	}
	k.names[lolcow.UID] = created.Name
	metav1.SetMetaDataAnnotation(&lolcow.ObjectMeta, nameOf, created.Name)
	return k.client.Update(ctx, lolcow)
}

// overlap creates a ConfigMap, if none has the greeting, and deletes all others.
func (k *keeper) overlap(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	owned, err := k.owned(ctx, lolcow)
	if err != nil {
		return err
	}
	kept := slices.IndexFunc(owned, func(one corev1.ConfigMap) bool { return one.Data["greeting"] == lolcow.Spec.Greeting })
	if kept < 0 {
		if err := k.client.Create(ctx, k.desired(lolcow)); err != nil {
			return err
		}
	}
	for i := range owned {
		if i == kept {
			continue
		}
		if err := k.client.Delete(ctx, &owned[i]); err != nil {
			return err
		}
	}
	return nil
}

// desired is a new ConfigMap.
func (k *keeper) desired(lolcow *v1alpha1.Lolcow) *corev1.ConfigMap {
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: lolcow.Name, Namespace: lolcow.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(lolcow, v1alpha1.SchemeGroupVersion.WithKind("Lolcow"))},
		},
		Data: map[string]string{"greeting": lolcow.Spec.Greeting},
	}
	if k.variant == Listed || k.variant == Remembers || k.variant == Overlaps {
		desired.Name, desired.GenerateName = "", lolcow.Name+"-"
	}
	return desired
}

func (k *keeper) report(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	lolcow.Status.ObservedGeneration = lolcow.Generation
	return k.client.Status().Update(ctx, lolcow)
}
