package acquit

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/operator"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace in which the reader's controller runs.
type scene struct {
	*operator.Operator
	b         *check.B
	client    client.Client
	namespace string
	log       *operator.Log
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, namespace: kube.Namespace(b)}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	s.must("making a client", err)
	log, logger := operator.NewLog(b)
	s.log = log
	s.Operator = operator.Start(b, s.namespace, entry, logger)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: name}}
}

// create creates a Lolcow, as a user does.
func (s *scene) create(name, greeting string) {
	s.b.Event("the user creates %s, with the greeting %s", name, greeting)
	s.must("creating a Lolcow", s.client.Create(s.b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}, Spec: v1alpha1.LolcowSpec{Greeting: greeting},
	}))
}

// change changes the greeting, as a user does.
func (s *scene) change(name, greeting string) {
	s.b.Event("the user changes the greeting of %s to %s", name, greeting)
	lolcow := s.lolcow(name)
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = greeting
	s.must("changing the Lolcow", s.client.Patch(s.b.Context(), lolcow, client.MergeFrom(before)))
}

// remove deletes the dependent of this kind, as a user does.
func (s *scene) remove(dependent client.Object) {
	s.b.Event("the user deletes the %T of cow", dependent)
	s.must("deleting a dependent", s.client.DeleteAllOf(s.b.Context(), dependent, client.InNamespace(s.namespace)))
}

func (s *scene) lolcow(name string) *v1alpha1.Lolcow {
	var lolcow v1alpha1.Lolcow
	s.must("reading a Lolcow", s.client.Get(s.b.Context(), s.request(name).NamespacedName, &lolcow))
	return &lolcow
}

// dependents are the Deployments that a Lolcow controls, and how many Services it controls.
func (s *scene) dependents(name string) (deployments []appsv1.Deployment, services int) {
	lolcow := s.lolcow(name)
	var all appsv1.DeploymentList
	s.must("listing Deployments", s.client.List(s.b.Context(), &all, client.InNamespace(s.namespace)))
	for _, deployment := range all.Items {
		if metav1.IsControlledBy(&deployment, lolcow) {
			deployments = append(deployments, deployment)
		}
	}
	var list corev1.ServiceList
	s.must("listing Services", s.client.List(s.b.Context(), &list, client.InNamespace(s.namespace)))
	for _, service := range list.Items {
		if metav1.IsControlledBy(&service, lolcow) {
			services++
		}
	}
	return deployments, services
}
