package raw

import (
	"context"
	"encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// report writes the status if it changed, and then tells of transitions: in the log, and to users in Events.
func (c *controller) report(ctx context.Context, f *v1alpha1.Foo, seen foo.Facts) error {
	status := foo.Status(f, seen, metav1.NewTime(c.clock.Now()))
	if apiequality.Semantic.DeepEqual(status, f.Status) {
		return nil
	}
	patch, err := statusPatch(f.ResourceVersion, status)
	if err != nil {
		return fmt.Errorf("writing status of Foo %s: %w", f.Name, err)
	}
	after, err := c.foos.Foos(f.Namespace).Patch(ctx, f.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: foo.FieldOwner}, "status")
	if err != nil {
		return fmt.Errorf("writing status of Foo %s: %w", f.Name, err)
	}
	c.written.foo(keyOf(f), after.ResourceVersion)

	for _, event := range foo.Events(f.Status, after.Status) {
		klog.FromContext(ctx).Info("Telling of a transition", "reason", event.Reason, "note", event.Note)
		c.recorder.Eventf(after, nil, event.Type, event.Reason, foo.Action, "%s", event.Note)
	}
	return nil
}

// statusPatch is a merge patch that makes the status what it should be. Every field is in it, as a merge
// patch leaves those alone that it does not name. The resourceVersion is the optimistic lock: a list, that
// of conditions for one, is replaced as a whole, so the patch must not fall on a newer one.
func statusPatch(resourceVersion string, status v1alpha1.FooStatus) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status": map[string]any{
			"observedGeneration": status.ObservedGeneration,
			"availableReplicas":  status.AvailableReplicas,
			"conditions":         status.Conditions,
		},
	})
}
