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

func TestReconcileWritesTheStatus(t *testing.T) {
	c, namespace := lab.Client(t), lab.Namespace(t)
	lolcow := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: namespace},
		Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
	}
	if err := c.Create(t.Context(), lolcow); err != nil {
		t.Fatalf("creating a Lolcow: %v", err)
	}
	key := client.ObjectKeyFromObject(lolcow)
	// The check puts other reconcilers in the place of yours.
	reconciler := lab.Reconciler(c, New)
	expectPromises := func(greeting string) {
		t.Helper()
		if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatalf("Reconcile returned an error: %v", err)
		}
		if err := c.Get(t.Context(), key, lolcow); err != nil {
			t.Fatalf("reading the Lolcow: %v", err)
		}
		if lolcow.Status.Greeting != greeting {
			t.Errorf("the greeting in the status is %q, want %q", lolcow.Status.Greeting, greeting)
		}
		if lolcow.Status.ObservedGeneration != lolcow.Generation {
			t.Errorf("observedGeneration is %d, and the generation is %d", lolcow.Status.ObservedGeneration, lolcow.Generation)
		}
		if !apimeta.IsStatusConditionTrue(lolcow.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("Ready is not True: %v", lolcow.Status.Conditions)
		}
	}
	expectPromises("Moo")
}
