package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endConversions removes the conversion webhook of a CRD in the cluster, if the harness applied it and the CRD that is about to be
// applied has none. An apply would leave the caBundle, which the operator owns, and be rejected.
func endConversions(ctx context.Context, out io.Writer, c client.Client, crd *unstructured.Unstructured) error {
	if _, converts, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "conversion"); converts {
		return nil
	}
	live := crd.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		if err := ignoreGone(err); err != nil {
			return fmt.Errorf("reading %s: %w", describe(crd), err)
		}
		return nil
	}
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
	if strategy != "Webhook" || !slices.ContainsFunc(live.GetManagedFields(), appliesConversion) {
		return nil
	}
	fmt.Fprintf(out, "    removing the conversion webhook of %s: what is applied now has none\n", describe(crd))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	if err := c.Patch(ctx, live, patch, fieldOwner); err != nil {
		return fmt.Errorf("removing the conversion webhook of %s: %w", describe(crd), err)
	}
	return nil
}

// appliesConversion reports whether an entry of managedFields says that the harness applied the conversion of a CRD.
func appliesConversion(entry metav1.ManagedFieldsEntry) bool {
	if entry.Manager != string(fieldOwner) || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
		return false
	}
	var fields map[string]any
	err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)
	_, found, _ := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:conversion")
	return err == nil && found
}
