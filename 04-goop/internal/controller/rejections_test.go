package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// An update of only messages in the status triggers no reconciliation. Every other update does.
func TestMessagesAloneTriggerNothing(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", ResourceVersion: "1", Generation: 1}}
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRunning, Reason: v1alpha1.ReasonApplyFailed, Message: "entry 1"}}
	for name, test := range map[string]struct {
		change   func(*v1alpha1.Goop)
		triggers bool
	}{
		"a message":   {func(object *v1alpha1.Goop) { object.Status.Conditions[0].Message = "entry 2" }, false},
		"a reason":    {func(object *v1alpha1.Goop) { object.Status.Conditions[0].Reason = v1alpha1.ReasonAPIError }, true},
		"a condition": {func(object *v1alpha1.Goop) { object.Status.Conditions = nil }, true},
		"the spec":    {func(object *v1alpha1.Goop) { object.Generation = 2 }, true},
		"a label":     {func(object *v1alpha1.Goop) { object.Labels = map[string]string{"a": "b"} }, true},
		"a deletion":  {func(object *v1alpha1.Goop) { object.DeletionTimestamp = &metav1.Time{} }, true},
		"a resync":    {func(object *v1alpha1.Goop) { object.ResourceVersion = "1" }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldOwner}}
		test.change(after)
		triggers := moreThanMessages(conditionsOfGoop).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		NewWithT(t).Expect(triggers).To(Equal(test.triggers), name)
	}
	NewWithT(t).Expect(before.Status.Conditions[0].Message).To(Equal("entry 1"), "what the cache holds is not changed")
}

// A policy keeps DaemonSets as they are. That work goes on after the end is not only in the log.
func TestWorkThatGoesOnAfterTheEndIsReported(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(failFast)
	f.runs("a/0", "b/0")
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), obj.GetName(), errors.New("a policy keeps DaemonSets"))
		},
	})
	f.ends(3, "", "a/0")
	f.tries(2)
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonFinished).Message).To(ContainSubstring("a policy keeps DaemonSets"))
	f.use()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.Expect(f.expectNotRunning(v1alpha1.ReasonFinished).Message).To(Equal(finishedCondition.Message))
}
