// Package subject has the operators that the tests of exercises 23c and 25c are about: some are right, and some have a mistake.
//
//	subject.go  the operator of 23c; apply.go is part of it
//	keeper.go   the operator of 25c
package subject

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
)

// The names of the operators. The tests get one of them by lab.Variable.
const (
	// Plain, Renames and Applies are right. Renames has other names and labels, and Applies sends other requests.
	Plain   = "plain"
	Renames = "renames"
	Applies = "applies"
	// Once never changes the Deployment after its creation.
	Once = "once"
	// SameSelector has the same selector in all Deployments.
	SameSelector = "same-selector"
	// Adopts does not look whose Deployment it is.
	Adopts = "adopts"
	// Counts writes in each reconciliation.
	Counts = "counts"
	// Silent returns no error of a write.
	Silent = "silent"
	// Blind does not watch Deployments.
	Blind = "blind"
)

// counter is the label that Counts writes. A change of an annotation would change the generation of a Deployment.
const counter = "example.com/reconciliations"

// Operator keeps a Deployment for each Lolcow.
type Operator struct {
	client  client.Client
	variant string
}

// New returns the operator. The check says which one; without the check, it is one that is right.
func New(c client.Client) *Operator { return &Operator{c, os.Getenv(lab.Variable)} }

// Desired returns the Deployment of a Lolcow. It needs no client.
func (o *Operator) Desired(lolcow *v1alpha1.Lolcow) *appsv1.Deployment {
	labels := map[string]string{"lolcow": lolcow.Name}
	container := corev1.Container{Name: "lolcow", Image: "lolcow", Args: []string{"--", lolcow.Spec.Greeting}}
	var annotations map[string]string
	switch o.variant {
	case Renames:
		labels = map[string]string{"app.kubernetes.io/name": "lolcow", "app.kubernetes.io/instance": lolcow.Name}
		annotations = map[string]string{"example.com/part-of": "the herd"}
		container = corev1.Container{Name: "server", Image: "example.com/server", Command: []string{"say"}, Args: []string{lolcow.Spec.Greeting}}
	case SameSelector:
		labels = map[string]string{"app": "lolcow"}
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: lolcow.Name, Namespace: lolcow.Namespace, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(lolcow, v1alpha1.SchemeGroupVersion.WithKind("Lolcow"))},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}
}

// Reconcile makes the Deployment what the Lolcow asks for.
func (o *Operator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := o.reconcile(ctx, req)
	switch {
	case o.variant == Applies && err != nil:
		err = fmt.Errorf("reconciling the Lolcow %s: %w", req.Name, err)
	case o.variant == Applies:
		return reconcile.Result{RequeueAfter: time.Hour}, nil
	}
	return reconcile.Result{}, err
}

func (o *Operator) reconcile(ctx context.Context, req reconcile.Request) error {
	var lolcow v1alpha1.Lolcow
	if err := o.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return client.IgnoreNotFound(err)
	}
	if lolcow.DeletionTimestamp != nil {
		return nil
	}
	desired := o.Desired(&lolcow)
	var deployment appsv1.Deployment
	err := o.client.Get(ctx, req.NamespacedName, &deployment)
	switch {
	case apierrors.IsNotFound(err):
		err = o.create(ctx, desired)
	case err != nil:
		return err
	case metav1.IsControlledBy(&deployment, &lolcow) || o.variant == Adopts:
		err = o.change(ctx, &deployment, desired)
	}
	if o.variant == Silent {
		return nil
	}
	return err
}

func (o *Operator) create(ctx context.Context, desired *appsv1.Deployment) error {
	if o.variant == Applies {
		return o.apply(ctx, desired)
	}
	return o.client.Create(ctx, desired)
}

// change writes the greeting, if it is another one.
func (o *Operator) change(ctx context.Context, deployment, desired *appsv1.Deployment) error {
	before := deployment.DeepCopy()
	switch {
	case o.variant == Once:
		return nil
	case o.variant == Counts:
		count, _ := strconv.Atoi(deployment.Labels[counter])
		metav1.SetMetaDataLabel(&deployment.ObjectMeta, counter, strconv.Itoa(count+1))
	case o.variant == Adopts:
		if metav1.GetControllerOf(deployment) == nil {
			deployment.OwnerReferences = append(deployment.OwnerReferences, desired.OwnerReferences...)
		}
	case greeting(deployment) == greeting(desired):
		return nil
	}
	// The selector, and with it the labels, cannot be changed.
	deployment.Spec.Template.Spec.Containers = desired.Spec.Template.Spec.Containers
	switch o.variant {
	case Applies:
		return o.apply(ctx, desired)
	case Renames:
		return o.client.Patch(ctx, deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	return o.client.Update(ctx, deployment)
}

func greeting(deployment *appsv1.Deployment) string {
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if len(args) == 0 {
		return ""
	}
	return args[len(args)-1]
}

// SetupWithManager has the manager call Reconcile.
func (o *Operator) SetupWithManager(mgr ctrl.Manager) error {
	builder := ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Lolcow{}).
		WithOptions(controller.Options{SkipNameValidation: new(true)}) // each test may have a manager
	if o.variant != Blind {
		builder = builder.Owns(&appsv1.Deployment{})
	}
	return builder.Complete(o)
}
