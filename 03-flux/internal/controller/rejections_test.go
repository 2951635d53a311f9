package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// A status update that changes only a message triggers no reconciliation; every other update does.
func TestMessagesAloneTriggerNothing(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: "bees", ResourceVersion: "1", Generation: 1}}
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConfigured, Reason: v1alpha1.ReasonApplyFailed, Message: "entry 1"}}
	for name, test := range map[string]struct {
		change   func(*v1alpha1.FluxSetup)
		triggers bool
	}{
		"a message":   {func(object *v1alpha1.FluxSetup) { object.Status.Conditions[0].Message = "entry 2" }, false},
		"a reason":    {func(object *v1alpha1.FluxSetup) { object.Status.Conditions[0].Reason = v1alpha1.ReasonAPIError }, true},
		"a condition": {func(object *v1alpha1.FluxSetup) { object.Status.Conditions = nil }, true},
		"the spec":    {func(object *v1alpha1.FluxSetup) { object.Generation = 2 }, true},
		"a label":     {func(object *v1alpha1.FluxSetup) { object.Labels = map[string]string{"a": "b"} }, true},
		"a deletion":  {func(object *v1alpha1.FluxSetup) { object.DeletionTimestamp = &metav1.Time{} }, true},
		"a resync":    {func(object *v1alpha1.FluxSetup) { object.ResourceVersion = "1" }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: setupFieldOwner}}
		test.change(after)
		triggers := moreThanMessages(conditionsOfFluxSetup).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		NewWithT(t).Expect(triggers).To(Equal(test.triggers), name)
	}
	NewWithT(t).Expect(before.Status.Conditions[0].Message).To(Equal("entry 1"), "the object in the cache is not changed")
}
