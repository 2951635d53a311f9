package scribble

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	keys := strconv.Itoa(len(object.Data))
	if object.Labels["keys"] == keys {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"keys":%q}}}`, keys)
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
