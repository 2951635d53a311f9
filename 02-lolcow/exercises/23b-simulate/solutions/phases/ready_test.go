//go:build start

package simulate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
)

// env is a Lolcow with two replicas on the API server, and a reconciler that the check chooses.
type env struct {
	*testing.T
	client     client.Client
	reconciler reconcile.Reconciler
	key        client.ObjectKey
}

func newEnv(t *testing.T) *env {
	t.Helper()
	c := lab.Client(t)
	lolcow := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: lab.Namespace(t)},
		Spec:       v1alpha1.LolcowSpec{Greeting: "Moo", Replicas: new(int32(2))},
	}
	if err := c.Create(t.Context(), lolcow); err != nil {
		t.Fatalf("creating a Lolcow: %v", err)
	}
	return &env{T: t, client: c, reconciler: lab.Reconciler(c, lab.Right), key: client.ObjectKeyFromObject(lolcow)}
}

// reconcile calls Reconcile once.
func (e *env) reconcile() {
	e.Helper()
	if _, err := e.reconciler.Reconcile(e.Context(), reconcile.Request{NamespacedName: e.key}); err != nil {
		e.Fatalf("Reconcile returned an error: %v", err)
	}
}

// greet changes the greeting of the Lolcow.
func (e *env) greet(greeting string) {
	e.Helper()
	var lolcow v1alpha1.Lolcow
	if err := e.client.Get(e.Context(), e.key, &lolcow); err != nil {
		e.Fatalf("reading the Lolcow: %v", err)
	}
	lolcow.Spec.Greeting = greeting
	if err := e.client.Update(e.Context(), &lolcow); err != nil {
		e.Fatalf("changing the Lolcow: %v", err)
	}
}

// expectReady fails the test if Ready is not as wanted.
func (e *env) expectReady(want bool) {
	e.Helper()
	var lolcow v1alpha1.Lolcow
	if err := e.client.Get(e.Context(), e.key, &lolcow); err != nil {
		e.Fatalf("reading the Lolcow: %v", err)
	}
	if got := apimeta.IsStatusConditionTrue(lolcow.Status.Conditions, v1alpha1.ConditionReady); got != want {
		e.Errorf("Ready is %t, and should be %t", got, want)
	}
}

// deployment returns the one Deployment of the namespace, whatever its name.
func (e *env) deployment() *appsv1.Deployment {
	e.Helper()
	var list appsv1.DeploymentList
	if err := e.client.List(e.Context(), &list, client.InNamespace(e.key.Namespace)); err != nil || len(list.Items) != 1 {
		e.Fatalf("%d Deployments, %v", len(list.Items), err)
	}
	return &list.Items[0]
}

func (e *env) write(d *appsv1.Deployment) {
	e.Helper()
	if err := e.client.Status().Update(e.Context(), d); err != nil {
		e.Fatalf("writing the status of the Deployment: %v", err)
	}
	e.reconcile()
}

func TestRollout(t *testing.T) {
	type phase struct {
		name                           string
		seen                           bool // the Deployment controller has seen the new greeting
		all, updated, ready, available int32
		want                           bool
	}
	for _, p := range []phase{
		{"not seen yet", false, 2, 2, 2, 2, false},
		{"seen, nothing done", true, 2, 0, 2, 2, false},
		{"surge", true, 3, 1, 2, 2, false},
		{"one old Pod is one of the two that are available", true, 3, 2, 2, 2, false},
		{"all are new, one is not ready", true, 2, 2, 1, 1, false},
		{"done", true, 2, 2, 2, 2, true},
	} {
		t.Run(p.name, func(t *testing.T) {
			e := newEnv(t)
			e.reconcile()
			e.expectReady(false)
			d := e.deployment()
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			}
			e.write(d)
			e.expectReady(true)

			old := e.deployment().Generation
			e.greet("Baa")
			e.reconcile()
			d = e.deployment()
			if d.Generation == old {
				t.Fatal("the new greeting has not arrived in the Deployment")
			}
			if p.seen {
				d.Status = appsv1.DeploymentStatus{
					ObservedGeneration: d.Generation, Replicas: p.all, UpdatedReplicas: p.updated, ReadyReplicas: p.ready,
					AvailableReplicas: p.available,
				}
				e.write(d)
			}
			e.expectReady(p.want)
		})
	}
}
