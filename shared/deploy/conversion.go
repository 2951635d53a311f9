package deploy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endConversions removes the conversion webhook of a CRD in the cluster, if the CRD that is about to be applied has none. An apply
// would leave the caBundle, which the operator owns, and be rejected.
func endConversions(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	if _, converts := crd.Object["spec"].(map[string]any)["conversion"]; converts {
		return nil
	}
	live := crd.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		return ignoreGone(err)
	}
	if strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy"); strategy != "Webhook" {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	if err := c.Patch(ctx, live, patch, fieldOwner); err != nil {
		return fmt.Errorf("removing the conversion webhook of %s: %w", describe(crd), err)
	}
	return nil
}
