// Package simulate is exercise 23b: a test that does what a controller of Kubernetes would do.
package simulate

import (
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/tests"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Check runs the reader's test with each reconciler.
func Check(t *check.T, work check.Work[check.Files]) {
	var binary *tests.Binary
	ok := t.Behaviour("the test compiles", func(b *check.B) { binary = tests.Build(b, work.Dir) })
	if !ok {
		return
	}
	defer binary.Remove()
	with := func(b *check.B, reconciler string) tests.Verdict {
		return binary.Run(b, lab.Variable+"="+reconciler)
	}
	t.Behaviour("the test writes what the Deployment controller would write", func(b *check.B) {
		with(b, lab.Numbers)
		simulated(b)
	})
	t.Behaviour("the test passes with reconcilers that are right", func(b *check.B) {
		with(b, lab.Numbers).ExpectPass("a reconciler that decides as kubectl rollout status does is right")
		with(b, lab.NoOldPods).ExpectPass("a reconciler that wants no other replicas than those that are updated is right")
	})
	for _, wrong := range []struct{ name, reconciler, text string }{
		{"the test fails if a Lolcow is Ready as soon as there is a Deployment", lab.AtOnce, "the Deployment controller has not reported anything, and the Lolcow is Ready"},
		{"the test fails if Ready is about the Deployment before its change", lab.AnyGeneration, "the status of the Deployment is of an older generation, and the Lolcow is Ready"},
		{"the test fails if Ready counts Pods of the old greeting", lab.AnyPods, "the Pods that are available are old ones, and the Lolcow is Ready"},
		{"the test fails if a Lolcow is never Ready", lab.Never, "the rollout has ended, and the Lolcow is not Ready"},
	} {
		t.Behaviour(wrong.name, func(b *check.B) { with(b, wrong.reconciler).ExpectFailure(wrong.text) })
	}
}

// simulated fails if no Deployment of this run has a status like that of the Deployment controller.
func simulated(b *check.B) {
	client := kube.Client(b)
	selector := check.RunLabel + "=" + os.Getenv(check.RunVariable)
	namespaces, err := client.CoreV1().Namespaces().List(b.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		b.Fatalf("listing namespaces: %v", err)
	}
	numbers := false
	for _, namespace := range namespaces.Items {
		deployments, err := client.AppsV1().Deployments(namespace.Name).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			b.Fatalf("listing Deployments: %v", err)
		}
		for _, deployment := range deployments.Items {
			if deployment.Status.Replicas == 0 {
				continue
			}
			if deployment.Status.ObservedGeneration > 0 {
				return
			}
			numbers = true
		}
	}
	if numbers {
		b.Fatalf("the status of the Deployments has numbers, and no observedGeneration: it does not say which spec they are about")
	}
	b.Fatalf("no Deployment has a status at the end: no controller writes one here, and the test has written none that the API server accepted")
}
