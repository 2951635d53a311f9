package lossless

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Label sets a label of a NetworkPolicy.
func Label(ctx context.Context, policies dynamic.ResourceInterface, name, key, value string) error {
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
	object.SetResourceVersion("")
	patch, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = policies.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
