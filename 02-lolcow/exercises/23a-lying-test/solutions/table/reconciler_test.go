//go:build start

package lyingtest

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
)

// reconciled is a Lolcow with this greeting, whose greeting was another one before, as the API server has it at the end.
func reconciled(t *testing.T, greeting string) *v1alpha1.Lolcow {
	t.Helper()
	c := lab.Client(t)
	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: lab.Namespace(t)}}
	lolcow.Spec.Greeting = "before"
	if err := c.Create(t.Context(), lolcow); err != nil {
		t.Fatal(err)
	}
	reconciler := lab.Reconciler(c, New)
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(lolcow)}
	reconcileOnce := func() {
		if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), request.NamespacedName, lolcow); err != nil {
			t.Fatal(err)
		}
	}
	reconcileOnce()
	lolcow.Spec.Greeting = greeting
	if err := c.Update(t.Context(), lolcow); err != nil {
		t.Fatal(err)
	}
	reconcileOnce()
	return lolcow
}

func TestPromises(t *testing.T) {
	for name, kept := range map[string]func(lolcow *v1alpha1.Lolcow) bool{
		"greeting":           func(lolcow *v1alpha1.Lolcow) bool { return lolcow.Status.Greeting == "Moo" },
		"observedGeneration": func(lolcow *v1alpha1.Lolcow) bool { return lolcow.Status.ObservedGeneration == lolcow.Generation },
		"Ready": func(lolcow *v1alpha1.Lolcow) bool {
			return apimeta.IsStatusConditionTrue(lolcow.Status.Conditions, v1alpha1.ConditionReady)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if lolcow := reconciled(t, "Moo"); !kept(lolcow) {
				t.Errorf("the status is %+v", lolcow.Status)
			}
		})
	}
}
