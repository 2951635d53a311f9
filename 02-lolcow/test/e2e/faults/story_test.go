package faults

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/internal/controller"
	"example.com/workbook/shared/faults"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

func setup(ctx context.Context, mgr ctrl.Manager, env faults.Env) error {
	return controller.NewLolcowReconciler(mgr.GetClient(), env.Recorder, env.Clock, "example.com/lolcow:test").SetupWithManager(ctx, mgr, env.Queue)
}

// Two Lolcows: the second wants the port that the first has, and gets it when that one has gone to another.
var story = []faults.Op{
	{Name: "create a", Do: create("a", "Moo", 0)},
	{Name: "change a", Do: change("a", func(spec *v1alpha1.LolcowSpec, _ int32) { spec.Greeting, spec.Replicas = "Baa", new(int32(2)) })},
	{Name: "create b", Do: create("b", "", 0)},
	{Name: "move a", Do: change("a", func(spec *v1alpha1.LolcowSpec, port int32) { spec.Port = new(port) })},
	{Name: "delete a's Service", Do: faults.Delete[corev1.Service]("a", metav1.DeletePropagationBackground)},
	{Name: "delete b", Do: faults.Delete[v1alpha1.Lolcow]("b", metav1.DeletePropagationBackground)},
}

// What other writers do, to what the operator owns and to what it does not.
var anytime = []faults.Op{
	{Name: "delete a's Deployment", Do: faults.Delete[appsv1.Deployment]("a", metav1.DeletePropagationBackground)},
	{Name: "delete a", Do: faults.Delete[v1alpha1.Lolcow]("a", metav1.DeletePropagationBackground)},
	{Name: "recreate a", Do: faults.Sequence(faults.Delete[v1alpha1.Lolcow]("a", metav1.DeletePropagationBackground), create("a", "Moo", 0))},
	{Name: "scale a's Deployment", Do: faults.Edit("a", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })},
	{Name: "change a's container", Do: faults.Edit("a", func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Args = []string{"--greeting=Quack"}
		d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 9090
	})},
	{Name: "strip a's labels and owners", Do: faults.Edit("a", func(s *corev1.Service) { s.Labels, s.OwnerReferences = nil, nil })},
	{Name: "change a's port", Do: faults.Edit("a", func(s *corev1.Service) { s.Spec.Ports[0].Port, s.Spec.Ports[0].NodePort = 81, 0 })},
	{Name: "take b's name", Do: func(ctx context.Context, s *faults.State) error {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: s.Namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		return client.IgnoreAlreadyExists(s.Client.Create(ctx, service))
	}},
	{Name: "release b's name", Do: faults.DeleteUnowned[corev1.Service]("b")},
	{Name: "greet from b", Do: change("b", func(spec *v1alpha1.LolcowSpec, _ int32) { spec.Greeting = "Moo" })},
}

func create(name, greeting string, port int) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		number, err := s.Port(port)
		if err != nil {
			return err
		}
		return s.Client.Create(ctx, &v1alpha1.Lolcow{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
			Spec:       v1alpha1.LolcowSpec{Greeting: greeting, Port: &number},
		})
	}
}

// change changes a spec; mutate gets a port that is free.
func change(name string, mutate func(*v1alpha1.LolcowSpec, int32)) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		port, err := s.Port(1)
		if err != nil {
			return err
		}
		return client.IgnoreNotFound(faults.Change(ctx, s, name, func(l *v1alpha1.Lolcow) { mutate(&l.Spec, port) }))
	}
}

// owned is that in steady state a Lolcow has what its spec asks for, unless its status says why not.
var owned = faults.Invariant{Name: "what the spec decides is there", Check: func(_ context.Context, s *faults.State) error {
	if !s.Steady {
		return nil
	}
	return each(s, func(lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, service *corev1.Service) error {
		if !apimeta.IsStatusConditionTrue(lolcow.Status.Conditions, v1alpha1.ConditionReady) {
			return nil
		}
		switch {
		case deployment == nil || service == nil:
			return nil // reported says so
		case *deployment.Spec.Replicas != *lolcow.Spec.Replicas:
			return fmt.Errorf("%s is Ready with %d replicas of %d", lolcow.Name, *deployment.Spec.Replicas, *lolcow.Spec.Replicas)
		case service.Spec.Ports[0].NodePort != *lolcow.Spec.Port || lolcow.Status.Port != *lolcow.Spec.Port:
			return fmt.Errorf("%s is Ready on another port", lolcow.Name)
		case lolcow.Status.Greeting != lolcow.Spec.Greeting:
			return fmt.Errorf("%s is Ready with the greeting %q", lolcow.Name, lolcow.Status.Greeting)
		}
		return nil
	})
}}

// reported is that in steady state the status is about the current generation, and says Ready unless something is in the way.
var reported = faults.Invariant{Name: "the status says what is", Check: func(_ context.Context, s *faults.State) error {
	if !s.Steady {
		return nil
	}
	return each(s, func(lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, service *corev1.Service) error {
		ready := apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady)
		if lolcow.Status.ObservedGeneration != lolcow.Generation || ready == nil {
			return fmt.Errorf("%s has a status of an older spec", lolcow.Name)
		}
		taken, err := nameTaken(s, lolcow)
		if err != nil {
			return err
		}
		switch ready.Reason {
		case v1alpha1.ReasonServing:
			if deployment != nil && service != nil {
				return nil
			}
		case v1alpha1.ReasonPortConflict:
			return nil
		case v1alpha1.ReasonNameConflict:
			if taken {
				return nil
			}
		}
		return fmt.Errorf("%s is %s, and nothing is in the way: %s", lolcow.Name, ready.Reason, ready.Message)
	})
}}

// nameTaken reports whether an object that a Lolcow does not own has its name.
func nameTaken(s *faults.State, lolcow *v1alpha1.Lolcow) (bool, error) {
	deployment, err := faults.Find[appsv1.Deployment](s, lolcow.Name)
	if err != nil {
		return false, err
	}
	service, err := faults.Find[corev1.Service](s, lolcow.Name)
	taken := deployment != nil && !metav1.IsControlledBy(deployment, lolcow) || service != nil && !metav1.IsControlledBy(service, lolcow)
	return taken, err
}

// each calls check for each Lolcow with the dependents that it owns.
func each(s *faults.State, check func(*v1alpha1.Lolcow, *appsv1.Deployment, *corev1.Service) error) error {
	lolcows, err := faults.All[v1alpha1.Lolcow](s)
	if err != nil {
		return err
	}
	for _, lolcow := range lolcows {
		deployment, err := faults.Find[appsv1.Deployment](s, lolcow.Name)
		if err != nil {
			return err
		}
		service, err := faults.Find[corev1.Service](s, lolcow.Name)
		if err != nil {
			return err
		}
		if deployment != nil && !metav1.IsControlledBy(deployment, lolcow) {
			deployment = nil
		}
		if service != nil && !metav1.IsControlledBy(service, lolcow) {
			service = nil
		}
		if err := check(lolcow, deployment, service); err != nil {
			return err
		}
	}
	return nil
}
