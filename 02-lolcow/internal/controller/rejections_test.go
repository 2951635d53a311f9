package controller

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// rejecting is the way of an operator's requests to an API server that rejects each change of a Deployment in other words.
type rejecting struct {
	http.RoundTripper
	count atomic.Int32
	// inTurn: every other response is that of an admission webhook that is down.
	inTurn bool
}

func (r *rejecting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/deployments/") {
		return r.RoundTripper.RoundTrip(request)
	}
	n, code, reason := r.count.Add(1), http.StatusForbidden, metav1.StatusReasonForbidden
	if r.inTurn && n%2 == 0 {
		code, reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"rejected, see entry %d"}`, code, reason, n)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// Each text is a write of the status, and the event of that write was a reconciliation at once. So was that of a reason.
func TestRejectionInOtherWordsBacksOffToo(t *testing.T) {
	t.Parallel()
	for name, inTurn := range map[string]bool{"in other words": false, "for another reason": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			o := newOperator(t, f)
			way := &rejecting{inTurn: inTurn}
			o.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				way.RoundTripper = next
				return way
			})
			o.start(t, f)
			f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
			f.expectSoon("cow", v1alpha1.ReasonApplyFailed)
			began := time.Now()
			// After 5 ms, and then after twice the time each: ten in 5 s.
			f.Consistently(way.count.Load).WithTimeout(4 * time.Second).WithPolling(100 * time.Millisecond).Should(BeNumerically("<=", 12))
			t.Logf("%d requests in %s", way.count.Load(), time.Since(began).Round(time.Millisecond))
			f.Eventually(way.count.Load).WithTimeout(settleTimeout).Should(BeNumerically(">=", 5), "it is tried again")
		})
	}
}

// A policy puts another image into what is applied, and a stamp that is another one each time: each apply is a change, and
// its event was a reconciliation at once. What another writer does to our fields, and a new spec, are not delayed.
func TestChangeByAdmissionBacksOffToo(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	o := newOperator(t, f)
	o.start(t, f)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.expectSoon("cow", v1alpha1.ReasonRollingOut)
	f.startPolicy(`Object{
		metadata: Object.metadata{annotations: {"stamp": oldObject == null ? "" : string(oldObject.metadata.resourceVersion)}},
		spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
			Object.spec.template.spec.containers{name: "lolcow", image: "example.com/other"}]}}}}`)
	deploymentWrites := func() int { return o.writes(t, f)["patch deployments/ cow"] }
	// A policy counts a little after it was written.
	f.Eventually(func(g Gomega) {
		deployment := f.deployment()
		deployment.Annotations = map[string]string{"stamp": "none"}
		g.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
		g.Expect(deployment.Annotations["stamp"]).NotTo(Equal("none"))
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.expectSoon("cow", v1alpha1.ReasonApplyFailed)
	f.Consistently(deploymentWrites).WithTimeout(4 * time.Second).WithPolling(100 * time.Millisecond).Should(BeNumerically("<=", 14))
	f.Eventually(deploymentWrites).WithTimeout(settleTimeout).Should(BeNumerically(">=", 5), "it is tried again")

	before := deploymentWrites()
	f.Eventually(func() error {
		deployment := f.deployment()
		deployment.Spec.Replicas = new(int32(7))
		return f.client.Update(f.ctx, deployment)
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.Eventually(func() int32 { return *f.deployment().Spec.Replicas }).WithTimeout(time.Second).Should(Equal(int32(1)))
	f.Eventually(func() error {
		lolcow := f.get("cow")
		lolcow.Spec.Replicas = new(int32(2))
		return f.client.Update(f.ctx, lolcow)
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.Eventually(func() int32 { return *f.deployment().Spec.Replicas }).WithTimeout(time.Second).Should(Equal(int32(2)))
	f.Expect(deploymentWrites()).To(BeNumerically(">", before))
}

// Our own status with another text in it triggers no reconciliation; everything else does.
func TestMessagesAloneTriggerNothing(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: "cow", ResourceVersion: "1", Generation: 1}}
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonApplyFailed, Message: "entry 1"}}
	for name, test := range map[string]struct {
		change   func(*v1alpha1.Lolcow)
		triggers bool
	}{
		"a message":   {func(object *v1alpha1.Lolcow) { object.Status.Conditions[0].Message = "entry 2" }, false},
		"a reason":    {func(object *v1alpha1.Lolcow) { object.Status.Conditions[0].Reason = v1alpha1.ReasonAPIError }, true},
		"a condition": {func(object *v1alpha1.Lolcow) { object.Status.Conditions = nil }, true},
		"the spec":    {func(object *v1alpha1.Lolcow) { object.Generation = 2 }, true},
		"a label":     {func(object *v1alpha1.Lolcow) { object.Labels = map[string]string{"a": "b"} }, true},
		"a deletion":  {func(object *v1alpha1.Lolcow) { object.DeletionTimestamp = &metav1.Time{} }, true},
		"a resync":    {func(object *v1alpha1.Lolcow) { object.ResourceVersion = "1" }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldOwner}}
		test.change(after)
		triggers := moreThanMessages(conditionsOfLolcow).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		NewWithT(t).Expect(triggers).To(Equal(test.triggers), name)
	}
	NewWithT(t).Expect(before.Status.Conditions[0].Message).To(Equal("entry 1"), "what the cache holds is not changed")
}
