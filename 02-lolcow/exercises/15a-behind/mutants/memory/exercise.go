package behind

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// New returns a reconciler. The reads of c are from a cache, and those of apiReader from the API server.
func New(c client.Client, _ client.Reader) reconcile.Reconciler {
	return &reconciler{client: c, created: map[types.UID]string{}}
}

type reconciler struct {
	client client.Client

	mu sync.Mutex
	// created are the ConfigMaps that were created, by the UID of the Lolcow.
	created map[types.UID]string
}

// Reconcile keeps one ConfigMap with the greeting of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var cards corev1.ConfigMapList
	if err := r.client.List(ctx, &cards, client.InNamespace(lolcow.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	for i := range cards.Items {
		if metav1.IsControlledBy(&cards.Items[i], &lolcow) {
			r.forget(&lolcow)
			return reconcile.Result{}, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.created[lolcow.UID] != "" {
		return reconcile.Result{}, nil
	}
	card := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: lolcow.Name + "-card-", Namespace: lolcow.Namespace},
		Data:       map[string]string{"greeting": lolcow.Spec.Greeting},
	}
	if err := controllerutil.SetControllerReference(&lolcow, card, r.client.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.client.Create(ctx, card); err != nil {
		return reconcile.Result{}, err
	}
	r.created[lolcow.UID] = card.Name
	return reconcile.Result{}, nil
}

// forget is called when the cache has the ConfigMap.
func (r *reconciler) forget(lolcow *v1alpha1.Lolcow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.created, lolcow.UID)
}
