package lossless

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Label sets a label of a NetworkPolicy.
func Label(ctx context.Context, policies dynamic.ResourceInterface, name, key, value string) error {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/labels/" + key, "value": value}})
	if err != nil {
		return err
	}
	_, err = policies.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}
