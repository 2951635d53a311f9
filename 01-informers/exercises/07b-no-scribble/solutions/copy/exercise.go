package scribble

import (
	"context"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
)

// Reconcile writes the number of keys of a ConfigMap into its label keys.
func Reconcile(ctx context.Context, lister listerscorev1.ConfigMapNamespaceLister, client typedcorev1.ConfigMapInterface,
	name string,
) error {
	object, err := lister.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	updated := object.DeepCopy()
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	updated.Labels["keys"] = strconv.Itoa(len(object.Data))
	if maps.Equal(object.Labels, updated.Labels) {
		return nil
	}
	_, err = client.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}
