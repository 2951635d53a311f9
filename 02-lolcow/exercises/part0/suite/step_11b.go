package suite

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// deployment are the behaviours of step 11b.
func (s *suite) deployment() {
	s.reconciles("the greeting of the spec arrives in the pod template of a Deployment", func(e *env) {
		e.create("cow", fields{"greeting": "Moo, says the first"})
		e.settle("cow")
		e.expectImage(e.deployment("Moo, says the first"))
	})
	s.reconciles("another greeting arrives in the same Deployment", func(e *env) {
		e.create("cow", fields{"greeting": "Moo, says the first"})
		e.settle("cow")
		before := e.deployment("Moo, says the first")
		e.change("cow", fields{"greeting": "Baa, says the second"})
		e.settle("cow")
		after := e.deployment("Baa, says the second")
		if after.UID != before.UID {
			e.Errorf("the greeting is in another Deployment: all pods would be deleted at once")
		}
		if says(after.Spec.Template, "Moo, says the first") {
			e.Errorf("the pod template still has the old greeting")
		}
	})
	s.reconciles("a greeting that is removed is not in the Deployment any more", func(e *env) {
		e.create("cow", fields{"greeting": "Moo, says the first"})
		e.settle("cow")
		e.change("cow", fields{"greeting": ""})
		e.settle("cow")
		if says(e.deployment("").Spec.Template, "Moo, says the first") {
			e.Errorf("the Lolcow has an empty greeting, and the pod template still has the old one")
		}
	})
	s.reconciles("the Deployment has the number of replicas of the spec, also if it is 0", func(e *env) {
		e.create("cow", fields{"greeting": "Moo", "replicas": int64(3)})
		for _, replicas := range []int32{3, 0, 2} {
			e.change("cow", fields{"replicas": int64(replicas)})
			e.settle("cow")
			e.expectReplicas(e.deployment("Moo"), replicas)
		}
	})
	s.reconciles("a reconciliation writes nothing if nothing has changed", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.quiet()
	})
	s.reconciles("a restart of the operator writes nothing if nothing has changed", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.Event("the operator restarts")
		e.restart()
		e.quiet()
	})
	s.reconciles("two Lolcows have two Deployments, each with its own greeting", (*env).twoLolcows)
	s.reconciles("the selector of a Deployment matches the pods of its own Lolcow, and of no other", (*env).selectors)
	s.reconciles("a Lolcow that is deleted is no error, and nothing is written for it", func(e *env) {
		before := e.wire.count()
		if _, err := e.reconcile("gone"); err != nil {
			e.Errorf("Reconcile returns an error, and would be called again and again: %s", e.neutral(err.Error()))
		}
		if writes := e.wire.writes(before); len(writes) > 0 {
			e.Errorf("Reconcile writes: %s", writes[0])
		}
	})
}

func (e *env) expectReplicas(deployment *appsv1.Deployment, replicas int32) {
	e.Helper()
	if got := *deployment.Spec.Replicas; got != replicas {
		e.Errorf("the Deployment has %d replicas; the Lolcow has %d", got, replicas)
	}
}

// expectImage asserts the image of a container, and that a node which has it does not pull it.
func (e *env) expectImage(deployment *appsv1.Deployment) {
	e.Helper()
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Image != "lolcow:latest" {
			continue
		}
		if container.ImagePullPolicy == corev1.PullAlways {
			e.Errorf("the pull policy of the image is Always, which is the default for the tag latest: a node that has the image pulls it all the same")
		}
		return
	}
	e.Errorf("no container of the pod template has the image lolcow:latest")
}

// selectors compares the selectors of two Deployments with the labels of each other's pods.
func (e *env) selectors() {
	e.create("cow", fields{"greeting": "Moo, says the first"})
	e.create("calf", fields{"greeting": "Baa, says the second"})
	e.settle("cow")
	e.settle("calf")
	cow, calf := e.deployment("Moo, says the first"), e.deployment("Baa, says the second")
	for _, pair := range [][2]*appsv1.Deployment{{cow, calf}, {calf, cow}} {
		selector, err := metav1.LabelSelectorAsSelector(pair[0].Spec.Selector)
		e.must(err, "reading the selector of a Deployment")
		if selector.Matches(labels.Set(pair[1].Spec.Template.Labels)) {
			e.Fatalf("the selector of one Lolcow's Deployment matches the pods of another Lolcow, and a selector cannot be changed later")
		}
	}
}

// expectGreeting asserts the greeting of the Deployment of a name.
func (e *env) expectGreeting(name, greeting string) {
	e.Helper()
	var deployment appsv1.Deployment
	e.must(e.client.Get(e.Context(), e.key(name), &deployment), "reading the Deployment "+name)
	if !says(deployment.Spec.Template, greeting) {
		e.Errorf("the pod template of the Deployment %s does not have the greeting %q", name, greeting)
	}
}

// twoLolcows gives two Lolcows the same greeting, one after the other.
func (e *env) twoLolcows() {
	e.create("cow", fields{"greeting": "Moo, says the first"})
	e.create("calf", fields{"greeting": "Baa, says the second"})
	e.settle("cow")
	e.settle("calf")
	cow, calf := e.deployment("Moo, says the first"), e.deployment("Baa, says the second")
	e.change("cow", fields{"greeting": "Good night"})
	e.settle("cow")
	e.expectGreeting(cow.Name, "Good night")
	e.expectGreeting(calf.Name, "Baa, says the second")
	e.change("calf", fields{"greeting": "Good night"})
	e.settle("calf")
	e.expectGreeting(calf.Name, "Good night")
}
