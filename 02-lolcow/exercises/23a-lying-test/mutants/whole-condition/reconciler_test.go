//go:build start

package lyingtest

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	if _, err := lab.Reconciler(c, New).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatalf("Reconcile returned an error: %v", err)
	}
	if err := c.Get(t.Context(), key, lolcow); err != nil {
		t.Fatalf("reading the Lolcow: %v", err)
	}
	if lolcow.Status.Greeting != "Moo" {
		t.Errorf("the greeting in the status is %q", lolcow.Status.Greeting)
	}
	if lolcow.Status.ObservedGeneration != lolcow.Generation {
		t.Errorf("observedGeneration is %d, and the generation %d", lolcow.Status.ObservedGeneration, lolcow.Generation)
	}
	want := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing,
		ObservedGeneration: lolcow.Generation,
	}}
	for i := range lolcow.Status.Conditions {
		want[i].LastTransitionTime = lolcow.Status.Conditions[i].LastTransitionTime
	}
	if !apiequality.Semantic.DeepEqual(lolcow.Status.Conditions, want) {
		t.Errorf("the conditions are %v", lolcow.Status.Conditions)
	}
}
