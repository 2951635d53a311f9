// Package who is exercise 02a: a program that says who acted on a Deployment.
package who

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/02-lolcow/exercises/internal/program"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// patience is for what controllers do.
const patience = 30 * time.Second

// Check runs the program for Deployments of a cluster.
func Check(t *check.T, work check.Work[check.Files]) {
	var who *program.Program
	ok := t.Behaviour("the program compiles", func(b *check.B) { who = program.Build(b, work.Dir, ".") })
	if !ok {
		return
	}
	defer who.Remove()
	ok = t.Behaviour("a Deployment with Pods: three components acted, in this order", func(b *check.B) {
		s := newScene(b, who)
		s.create("web", 3, nil)
		s.scheduled(3)
		s.expect("deployment-controller", "replicaset-controller", "default-scheduler")
	})
	if !ok {
		return
	}
	t.Behaviour("a Deployment on which no component has acted: no line, whatever happened to another one", func(b *check.B) {
		s := newScene(b, who)
		s.create("web-shop", 1, nil)
		s.scheduled(1)
		s.create("web", 1, paused)
		s.expect()
	})
	t.Behaviour("neither a deleted Deployment of the same name counts, nor a Pod that has only its label", func(b *check.B) {
		s := newScene(b, who)
		s.create("web", 1, nil)
		s.scheduled(1)
		s.createPod(map[string]string{"app": "web"})
		s.scheduled(2)
		s.remove("web")
		s.create("web", 1, paused)
		s.expect()
	})
	t.Behaviour("Pods that no scheduler takes: two components acted", func(b *check.B) {
		s := newScene(b, who)
		s.create("web", 1, func(d *appsv1.Deployment) { d.Spec.Template.Spec.SchedulerName = "none-such" })
		s.events("Pods are created", func(event corev1.Event) bool { return event.Reason == "SuccessfulCreate" }, 1)
		s.expect("deployment-controller", "replicaset-controller")
	})
	t.Behaviour("a component of any other name is printed, too", func(b *check.B) {
		s := newScene(b, who)
		s.report("Deployment", s.create("web", 1, paused), "night-watch")
		s.expect("night-watch")
	})
	t.Behaviour("what acted on only one of the ReplicaSets, or of the Pods, counts", func(b *check.B) {
		for i := range 2 {
			s := newScene(b, who)
			s.create("web", 0, nil)
			s.replicaSets(1)
			s.changeTemplate()
			s.report("ReplicaSet", &s.replicaSets(2)[i], "night-watch")
			s.expect("night-watch")
		}
		s := newScene(b, who)
		s.create("web", 2, func(d *appsv1.Deployment) { d.Spec.Template.Spec.SchedulerName = "none-such" })
		s.events("Pods are created", func(event corev1.Event) bool { return event.Reason == "SuccessfulCreate" }, 2)
		pods, err := s.client.CoreV1().Pods(s.namespace).List(b.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 2 {
			b.Fatalf("listing Pods: %d (%v)", len(pods.Items), err)
		}
		s.report("Pod", &pods.Items[1], "night-watch")
		s.expect("deployment-controller", "replicaset-controller", "night-watch")
	})
	t.Behaviour("no such Deployment: an error", func(b *check.B) {
		s := newScene(b, who)
		if output, err := s.run("web"); err == nil {
			b.Fatalf("there is no Deployment web, and the program exits with 0, and prints %q", output)
		}
	})
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

// scene is a namespace of the cluster.
type scene struct {
	b         *check.B
	who       *program.Program
	client    kubernetes.Interface
	namespace string
}

func newScene(b *check.B, who *program.Program) *scene {
	return &scene{b: b, who: who, client: kube.Client(b), namespace: kube.Namespace(b)}
}

func (s *scene) create(name string, replicas int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/none"}}},
		},
	}}
	if change != nil {
		change(d)
	}
	s.b.Event("the check creates the Deployment %s with %d replicas, paused: %t", name, replicas, d.Spec.Paused)
	created, err := s.client.AppsV1().Deployments(s.namespace).Create(s.b.Context(), d, metav1.CreateOptions{})
	if err != nil {
		s.b.Fatalf("creating a Deployment: %v", err)
	}
	return created
}

// createPod creates a Pod without an owner.
func (s *scene) createPod(labels map[string]string) {
	s.b.Event("the check creates a Pod with the labels %v and without an owner", labels)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "alone", Image: "example.com/none"}}},
	}
	if _, err := s.client.CoreV1().Pods(s.namespace).Create(s.b.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.b.Fatalf("creating a Pod: %v", err)
	}
}

func (s *scene) remove(name string) {
	s.b.Event("the check deletes the Deployment %s", name)
	if err := s.client.AppsV1().Deployments(s.namespace).Delete(s.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.b.Fatalf("deleting a Deployment: %v", err)
	}
}

// changeTemplate changes the template of the Deployment web, so that it gets another ReplicaSet.
func (s *scene) changeTemplate() {
	s.b.Event("the check changes the template of the Deployment web")
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"changed":"yes"}}}}}`)
	if _, err := s.client.AppsV1().Deployments(s.namespace).Patch(s.b.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.b.Fatalf("changing a Deployment: %v", err)
	}
}

// replicaSets waits until there are that many, and returns them.
func (s *scene) replicaSets(want int) []appsv1.ReplicaSet {
	var list *appsv1.ReplicaSetList
	s.b.Eventually(patience, func() string {
		var err error
		if list, err = s.client.AppsV1().ReplicaSets(s.namespace).List(s.b.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		if n := len(list.Items); n != want {
			return fmt.Sprintf("the cluster does not work as it should: %d ReplicaSets, and not %d", n, want)
		}
		return ""
	})
	return list.Items
}

// scheduled waits until the scheduler has reported that many Pods.
func (s *scene) scheduled(pods int) {
	s.events("Pods are scheduled", func(event corev1.Event) bool { return event.Reason == "Scheduled" }, pods)
}

// events waits until that many Events of the namespace match.
func (s *scene) events(what string, match func(corev1.Event) bool, want int) {
	s.b.Eventually(patience, func() string {
		list, err := s.client.CoreV1().Events(s.namespace).List(s.b.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if n := len(slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return !match(event) })); n < want {
			return fmt.Sprintf("the cluster does not work as it should: %d %s, of %d", n, what, want)
		}
		return ""
	})
}

// report sends an Event about an object, as a component of that name.
func (s *scene) report(kind string, object metav1.Object, component string) {
	s.b.Event("%s sends an Event about the %s %s", component, kind, object.GetName())
	now := metav1.Now()
	_, err := s.client.CoreV1().Events(s.namespace).Create(s.b.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: component},
		InvolvedObject: corev1.ObjectReference{
			Kind: kind, Namespace: s.namespace, Name: object.GetName(), UID: object.GetUID(),
		},
		Reason: "Watched", Message: "all is quiet", Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: component}, ReportingController: component, ReportingInstance: component + "-0",
	}, metav1.CreateOptions{})
	if err != nil {
		s.b.Fatalf("creating an Event: %v", err)
	}
}

// run runs the program for a Deployment.
func (s *scene) run(name string) (string, error) {
	return s.who.Run(s.b, s.namespace, name)
}

// expect compares what the program prints for the Deployment web.
func (s *scene) expect(want ...string) {
	output, err := s.run("web")
	if err != nil {
		s.b.Fatalf("the program ends with an error: %v", err)
	}
	if got := strings.Fields(output); !slices.Equal(got, want) {
		s.b.Fatalf("it prints [%s], and should print [%s]", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}
