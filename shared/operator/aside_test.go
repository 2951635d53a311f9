package operator

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func replicasOf(t *testing.T, clients kubernetes.Interface, m *manifest) int32 {
	t.Helper()
	d, err := clients.AppsV1().Deployments(m.deployment.Namespace).Get(t.Context(), m.deployment.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

func TestADeployedOperatorComesBackAfterARun(t *testing.T) {
	m := testManifest(t)
	for _, before := range []int32{1, 3} {
		m.deployment.Spec.Replicas = &before
		clients := fake.NewClientset(m.deployment)
		p := &Process{manifest: m}
		var said strings.Builder
		if err := p.setAside(t.Context(), &said, clients); err != nil {
			t.Fatal(err)
		}
		if got := replicasOf(t, clients, m); got != 0 {
			t.Errorf("%d replicas run beside the process", got)
		}
		if !strings.Contains(said.String(), "Deployment "+m.deployment.Namespace+"/"+m.deployment.Name) || !strings.Contains(said.String(), "0") {
			t.Errorf("it was not said what happens to the Deployment: %q", said.String())
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := replicasOf(t, clients, m); got != before {
			t.Errorf("%d replicas after the run, %d before it", got, before)
		}
	}
}

// The run that set the operator aside may have been killed. The next one ends what it began.
func TestADeployedOperatorComesBackAfterARunThatWasKilled(t *testing.T) {
	m := testManifest(t)
	before := int32(3)
	m.deployment.Spec.Replicas = &before
	clients := fake.NewClientset(m.deployment)
	if err := (&Process{manifest: m}).setAside(t.Context(), t.Output(), clients); err != nil {
		t.Fatal(err)
	}
	p := &Process{manifest: m}
	if err := errors.Join(p.setAside(t.Context(), t.Output(), clients), p.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := replicasOf(t, clients, m); got != before {
		t.Errorf("%d replicas after the runs, %d before them", got, before)
	}

	// What is stopped now is meant to be.
	if err := scale(t.Context(), clients, m.deployment, 0); err != nil {
		t.Fatal(err)
	}
	p = &Process{manifest: m}
	if err := errors.Join(p.setAside(t.Context(), t.Output(), clients), p.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := replicasOf(t, clients, m); got != 0 {
		t.Errorf("%d replicas of an operator that was stopped", got)
	}
}

// Who scaled the operator since means it.
func TestADeploymentThatWasChangedStays(t *testing.T) {
	m := testManifest(t)
	before, since := int32(2), int32(1)
	m.deployment.Spec.Replicas = &before
	clients := fake.NewClientset(m.deployment)
	p := &Process{manifest: m}
	if err := p.setAside(t.Context(), t.Output(), clients); err != nil {
		t.Fatal(err)
	}
	if err := scale(t.Context(), clients, m.deployment, since); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := replicasOf(t, clients, m); got != since {
		t.Errorf("got %d replicas, want %d", got, since)
	}
}

func TestWithoutADeploymentNothingIsSetAside(t *testing.T) {
	m := testManifest(t)
	stopped := int32(0)
	m.deployment.Spec.Replicas = &stopped
	for name, clients := range map[string]kubernetes.Interface{"none": fake.NewClientset(), "one without pods": fake.NewClientset(m.deployment)} {
		p := &Process{manifest: m}
		var said strings.Builder
		if err := p.setAside(t.Context(), &said, clients); err != nil || said.Len() > 0 {
			t.Errorf("%s: got %v, %q", name, err, said.String())
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// One that is deleted meanwhile is not missed.
	before := int32(1)
	m.deployment.Spec.Replicas = &before
	clients := fake.NewClientset(m.deployment)
	p := &Process{manifest: m}
	if err := p.setAside(t.Context(), t.Output(), clients); err != nil {
		t.Fatal(err)
	}
	if err := clients.AppsV1().Deployments(m.deployment.Namespace).Delete(t.Context(), m.deployment.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("a Deployment that is gone is an error: %v", err)
	}
}
