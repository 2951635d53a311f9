package behind

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// New returns a reconciler. The reads of c are from a cache, and those of apiReader from the API server.
func New(c client.Client, apiReader client.Reader) reconcile.Reconciler {
	return &reconciler{client: c, reader: apiReader}
}

type reconciler struct {
	client client.Client
	reader client.Reader
}

// Reconcile keeps one ConfigMap with the greeting of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// The cache first: usually it has the ConfigMap, and that costs no request.
	for _, reader := range []client.Reader{r.client, r.reader} {
		var cards corev1.ConfigMapList
		if err := reader.List(ctx, &cards, client.InNamespace(lolcow.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		for i := range cards.Items {
			if metav1.IsControlledBy(&cards.Items[i], &lolcow) {
				return reconcile.Result{}, nil
			}
		}
	}
	card := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: lolcow.Name + "-card-", Namespace: lolcow.Namespace},
		Data:       map[string]string{"greeting": lolcow.Spec.Greeting},
	}
	if err := controllerutil.SetControllerReference(&lolcow, card, r.client.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.client.Create(ctx, card)
}
