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

// simulate is what the Deployment controller reports, if it has seen the newest Deployment.
func (e *env) simulate(status appsv1.DeploymentStatus) {
	e.Helper()
	var deployment appsv1.Deployment
	if err := e.client.Get(e.Context(), e.key, &deployment); err != nil {
		e.Fatalf("reading the Deployment: %v", err)
	}
	deployment.Status = status
	deployment.Status.ObservedGeneration = deployment.Generation
	if err := e.client.Status().Update(e.Context(), &deployment); err != nil {
		e.Fatalf("writing the status of the Deployment: %v", err)
	}
	e.reconcile()
}

var done = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}

func TestReady(t *testing.T) {
	e := newEnv(t)
	e.reconcile()
	e.expectReady(false)
	e.simulate(done)
	e.expectReady(true)
}
