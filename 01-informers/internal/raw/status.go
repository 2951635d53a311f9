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

// report writes the status if it changed. Then it reports transitions, to operators in the log and to users in Events.
func (c *controller) report(ctx context.Context, f *v1alpha1.Foo, observed foo.Observation) error {
	status := foo.Status(f, observed, metav1.NewTime(c.clock.Now()))
	if apiequality.Semantic.DeepEqual(status, f.Status) {
		return nil
	}
	patch, err := statusPatch(f.ResourceVersion, status)
	if err != nil {
		return fmt.Errorf("writing the status of Foo %s: %w", f.Name, err)
	}
	after, err := c.foos.Foos(f.Namespace).Patch(ctx, f.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: foo.FieldOwner}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of Foo %s: %w", f.Name, err)
	}
	c.written.noteFoo(keyOf(f), after.ResourceVersion)

	for _, one := range foo.Transitions(f.Status, after.Status) {
		klog.FromContext(ctx).Info("Condition changed", "type", one.Type, "status", one.Status, "reason", one.Reason, "message", one.Message)
		if one.EventType != "" {
			c.recorder.Eventf(after, nil, one.EventType, one.Reason, foo.Action, "%s", one.Note())
		}
	}
	return nil
}

// statusPatch is a merge patch with every field of the status, because a merge patch does not change a field that it leaves
// out. The resourceVersion is the optimistic lock: a merge patch replaces whole lists, and another writer's condition would
// be lost.
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
