// Package quiet is exercise 14b: a controller that comes to a steady state.
package quiet

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader repairs.
type Entry func(mgr ctrl.Manager, options controller.Options) error

const patience = 5 * time.Second

// rounds is how often a controller that has become Ready may still write: its cache may be behind.
const rounds = 10

// Check runs the controller, and simulates the Deployment controller.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Lolcow becomes Ready when its Deployment is available", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.becomesReady()
	})
	t.Behaviour("a new greeting arrives in the Deployment", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.greets("Moo")
		s.change("Baa")
		s.greets("Baa")
	})
	if !ok {
		return
	}
	t.Behaviour("a Lolcow is not Ready any more when its Deployment is not available", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.becomesReady()
		s.available(0)
		s.ready(metav1.ConditionFalse)
		s.available(1)
		s.ready(metav1.ConditionTrue)
		s.change("Baa")
		s.greets("Baa")
		s.ready(metav1.ConditionFalse)
		s.comesToRest()
		// The number is the same, and is about the new greeting now.
		s.available(1)
		s.ready(metav1.ConditionTrue)
	})
	t.Behaviour("a reconciliation in steady state sends no request", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.becomesReady()
		s.settles()
	})
	t.Behaviour("after a restart with nothing changed, it sends no write", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.becomesReady()
		s.comesToRest()
		s.Stop()
		s.start()
		s.Idle(1)
		if sent := s.Write(); sent != "" {
			b.Fatalf("nothing has changed, and after the restart it sent: %s", sent)
		}
		if n := s.Queue().HandedOut(); n > 2 {
			b.Fatalf("nothing has changed, and after the restart there were %d reconciliations", n)
		}
	})
	t.Behaviour("in steady state nothing is left to be done later", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.greets("Moo")
		s.ready(metav1.ConditionFalse)
		s.nothingLater("and the Deployment is not available yet")
		s.available(1)
		s.ready(metav1.ConditionTrue)
		s.nothingLater("and the Lolcow is Ready")
	})
}

// nothingLater asserts that a controller that starts now asks for no reconciliation at a later time.
func (s *scene) nothingLater(state string) {
	s.Stop()
	s.start()
	s.Idle(1)
	if later := s.Queue().Delays(); len(later) > 0 {
		s.b.Fatalf("nothing has changed, %s, and it asked for another reconciliation in %s", state, later[0])
	}
}

// becomesReady makes the Deployment available, and waits for the status of the Lolcow.
func (s *scene) becomesReady() {
	s.greets("Moo")
	s.ready(metav1.ConditionFalse)
	s.available(1)
	s.ready(metav1.ConditionTrue)
}

// comesToRest triggers reconciliations until one sends no write. One that never settles is for another behaviour to find.
func (s *scene) comesToRest() {
	for range rounds {
		if s.reconciles() == "" {
			break
		}
	}
}

// settles triggers reconciliations until one sends no write, and asserts that this one reads from the cache.
func (s *scene) settles() {
	var sent string
	for range rounds {
		reads := len(s.Wire.Requests("get", "list"))
		if sent = s.reconciles(); sent != "" {
			continue
		}
		if read := s.Wire.Requests("get", "list")[reads:]; len(read) > 0 {
			s.b.Fatalf("reads come from the cache, and a reconciliation sends: %s", read[0])
		}
		return
	}
	s.b.Fatalf("nothing has changed, and each reconciliation sends: %s", sent)
}

// reconciles triggers a reconciliation, waits until the queue is empty, and returns what was written.
func (s *scene) reconciles() string { return s.Reconcile(s.request()) }

// ready waits until the condition Ready has the status.
func (s *scene) ready(want metav1.ConditionStatus) {
	s.b.Eventually(patience, func() string {
		condition := apimeta.FindStatusCondition(s.lolcow().Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case condition == nil:
			return "the Lolcow has no condition Ready"
		case condition.Status != want:
			return fmt.Sprintf("Ready is %s, and should be %s", condition.Status, want)
		}
		return ""
	})
}

// greets waits until the Deployment has the greeting.
func (s *scene) greets(greeting string) {
	s.b.Eventually(patience, func() string {
		deployment := s.deployment()
		if deployment == nil {
			return "the Lolcow has no Deployment"
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if strings.Contains(strings.Join(container.Args, " "), greeting) {
				return ""
			}
		}
		return "the Deployment does not have the greeting " + greeting
	})
}

// available is what the Deployment controller does.
func (s *scene) available(replicas int32) {
	s.b.Event("%d replicas of the Deployment are available", replicas)
	deployment := s.deployment()
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
	s.must("writing the status of the Deployment", s.client.Status().Update(s.b.Context(), deployment))
}
