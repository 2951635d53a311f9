//go:build start

package sixmutants

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
)

// env is a namespace on the API server, and an operator that the check chooses.
type env struct {
	*testing.T
	client    client.Client
	namespace string
	operator  *subject.Operator
}

func newEnv(t *testing.T) *env {
	t.Helper()
	c := lab.Client(t)
	return &env{T: t, client: c, namespace: lab.Namespace(t), operator: subject.New(c)}
}

// create creates a Lolcow.
func (e *env) create(name, greeting string) *v1alpha1.Lolcow {
	e.Helper()
	lolcow := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace}, Spec: v1alpha1.LolcowSpec{Greeting: greeting},
	}
	if err := e.client.Create(e.Context(), lolcow); err != nil {
		e.Fatalf("creating a Lolcow: %v", err)
	}
	return lolcow
}

// reconcile calls Reconcile once.
func (e *env) reconcile(name string) {
	e.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: e.namespace, Name: name}}
	if _, err := e.operator.Reconcile(e.Context(), request); err != nil {
		e.Fatalf("Reconcile returned an error: %v", err)
	}
}

// deployment reads a Deployment.
func (e *env) deployment(name string) *appsv1.Deployment {
	e.Helper()
	var deployment appsv1.Deployment
	if err := e.client.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, &deployment); err != nil {
		e.Fatalf("reading the Deployment: %v", err)
	}
	return &deployment
}

// expectGreeting fails the test if the Deployment has another greeting.
func (e *env) expectGreeting(deployment *appsv1.Deployment, greeting string) {
	e.Helper()
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if len(args) == 0 || args[len(args)-1] != greeting {
		e.Errorf("the arguments are %q, and should end with %q", args, greeting)
	}
}

// start starts a manager that runs the operator in the namespace. It ends with the test.
func (e *env) start() {
	e.Helper()
	mgr, err := ctrl.NewManager(lab.Config(e), ctrl.Options{
		Scheme:  lab.Scheme(),
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		e.Fatalf("making a manager: %v", err)
	}
	if err := subject.New(mgr.GetClient()).SetupWithManager(mgr); err != nil {
		e.Fatalf("setting the operator up: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	e.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the manager returned an error: %v", err)
		}
	})
}

func TestGreeting(t *testing.T) {
	e := newEnv(t)
	lolcow := e.create("cow", "Moo")
	e.reconcile("cow")
	e.expectGreeting(e.deployment("cow"), "Moo")

	lolcow.Spec.Greeting = "Baa"
	if err := e.client.Update(e.Context(), lolcow); err != nil {
		e.Fatal(err)
	}
	e.reconcile("cow")
	e.expectGreeting(e.deployment("cow"), "Baa")
}

func TestSelectors(t *testing.T) {
	operator := subject.New(nil)
	desired := func(name string) *appsv1.Deployment {
		return operator.Desired(&v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
	}
	one, other := desired("one"), desired("other")
	selector, err := metav1.LabelSelectorAsSelector(one.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(one.Spec.Template.Labels)) {
		t.Error("the selector does not match the Pods of its own Deployment")
	}
	if selector.Matches(labels.Set(other.Spec.Template.Labels)) {
		t.Error("the selector matches the Pods of another Deployment")
	}
}

func TestNotOwned(t *testing.T) {
	e := newEnv(t)
	someLabels := map[string]string{"app": "another"}
	err := e.client.Create(e.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: e.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: someLabels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: someLabels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "another", Image: "another"}}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := e.deployment("cow").ResourceVersion
	e.create("cow", "Moo")
	e.reconcile("cow")
	if e.deployment("cow").ResourceVersion != before {
		t.Error("the Deployment of another owner was changed")
	}
}

func TestSteadyState(t *testing.T) {
	e := newEnv(t)
	e.create("cow", "Moo")
	e.reconcile("cow")
	before := e.deployment("cow").ResourceVersion
	e.reconcile("cow")
	if e.deployment("cow").ResourceVersion != before {
		t.Error("the second reconciliation has written")
	}
}

func TestRejected(t *testing.T) {
	e := newEnv(t)
	e.create("cow", "Moo")
	if err := e.client.Delete(e.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}); err != nil {
		t.Fatal(err)
	}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: e.namespace, Name: "cow"}}
	if _, err := e.operator.Reconcile(e.Context(), request); err == nil {
		t.Error("the API server has rejected the Deployment, and Reconcile returned nil")
	}
}

func TestDeleted(t *testing.T) {
	e := newEnv(t)
	e.start()
	e.create("cow", "Moo")
	key := client.ObjectKey{Namespace: e.namespace, Name: "cow"}
	var first, second appsv1.Deployment
	lab.Eventually(e, "the Deployment", func() bool { return e.client.Get(e.Context(), key, &first) == nil })
	if err := e.client.Delete(e.Context(), &first); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(e, "a new Deployment", func() bool {
		return e.client.Get(e.Context(), key, &second) == nil && second.UID != first.UID
	})
}
