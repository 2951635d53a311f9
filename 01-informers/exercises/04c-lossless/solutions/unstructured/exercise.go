package lossless

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// Label sets a label of a NetworkPolicy.
func Label(ctx context.Context, policies dynamic.ResourceInterface, name, key, value string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := policies.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		object.SetLabels(labels)
		_, err = policies.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
}
