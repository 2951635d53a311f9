package suite

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reasons of the condition Ready for a request that fails: the API server rejects it, or it may succeed the next time.
const (
	applyFailed = "ApplyFailed"
	apiError    = "APIError"
)

// failures are the behaviours of step 16a.
func (s *suite) failures() {
	s.reconciles("a Deployment that a quota forbids is reported as ApplyFailed, tried again, and there when the quota is gone", func(e *env) {
		quota := e.forbidDeployments()
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(applyFailed, exceeded)
		e.Event("kubectl delete: ResourceQuota none")
		e.must(e.client.Delete(e.Context(), quota), "deleting the quota")
		e.expectRecovery(applyFailed)
	})
	s.reconciles("an admission webhook that fails is reported as APIError, tried again, and forgotten when it works", func(e *env) {
		webhook := e.webhook(failing)
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(apiError, webhookFailed)
		webhook.set(allowing)
		e.expectRecovery(apiError)
	})
	s.reconciles("a Service that a webhook denies is reported as ApplyFailed, tried again, and there when it is allowed", func(e *env) {
		webhook := e.webhook(denying)
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(applyFailed, webhookDenied)
		webhook.set(allowing)
		e.expectRecovery(applyFailed)
	})
	s.reconciles("a response 429 is reported as APIError, tried again, and forgotten when it is over", func(e *env) {
		e.wire.replace(tooManyRequests)
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(apiError, "too many requests")
		e.Event("the proxy lets requests through again")
		e.wire.replace(nil)
		e.expectRecovery(apiError)
	})
	s.reconciles("a connection that is lost is reported as APIError, tried again, and forgotten when there is one", func(e *env) {
		e.wire.replace(lostConnection)
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(apiError, errLost.Error())
		e.Event("the API server can be reached again")
		e.wire.replace(nil)
		e.expectRecovery(apiError)
	})
	s.reconciles("a Service that is invalid is reported as ApplyFailed, tried again, and there when it is valid", func(e *env) {
		e.wire.replace(invalidService("spec.externalName", `Invalid value: "moo": may not be set`)) //nolint:bodyclose // the client does
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(applyFailed, "spec.externalName")
		e.Event("what made it invalid is gone")
		e.wire.replace(nil)
		e.expectRecovery(applyFailed)
	})
	s.reconciles("a change that is rejected is reported, although the pods of before serve", (*env).rejectedChange)
	s.conflicts()
}

// expectFailure calls Reconcile while a request fails. The user has to see why, and Reconcile has to be called again.
func (e *env) expectFailure(reason, text string) {
	e.attempt()
	ready := e.expectReady(metav1.ConditionFalse, reason)
	if !strings.Contains(ready.Message, text) {
		e.Errorf("the message of the condition does not have the text of the response, %q", text)
	}
	before := e.wire.count()
	result, err := e.reconcile("cow")
	if !comesAgain(result, err) {
		e.Errorf("Reconcile reports %s, and %s: nothing triggers another try", reason, returned(err))
	}
	if e.statusWrites(before) > 0 {
		e.Errorf("a retry that fails as the one before writes the status")
	}
}

// expectRecovery calls Reconcile until the reason is gone, and asserts that all is there.
func (e *env) expectRecovery(reason string) {
	e.awaitEnd(reason)
	e.deployment("Moo")
	e.service()
	e.expectReady(metav1.ConditionFalse, rollingOut)
}

// awaitEnd calls Reconcile until the reason is gone, and nothing is left to do.
func (e *env) awaitEnd(reason string) {
	e.reconcileUntil(func() string {
		if e.condition("cow", "Ready").Reason == reason {
			return "what failed would succeed now, and the reason is still " + reason
		}
		return ""
	})
}

// rejectedChange has the API server reject the new port of a Lolcow that serves.
func (e *env) rejectedChange() {
	e.serveAt(firstPort)
	e.wire.replace(invalidService("spec.externalName", `Invalid value: "moo": may not be set`)) //nolint:bodyclose // the client does
	e.change("cow", fields{"port": int64(secondPort)})
	e.expectFailure(applyFailed, "spec.externalName")
	e.Event("what made it invalid is gone")
	e.wire.replace(nil)
	e.awaitEnd(applyFailed)
	e.expectPort(secondPort)
	e.expectReady(metav1.ConditionTrue, serving)
}

// exceeded is what the API server says of an object that a quota forbids.
const exceeded = "exceeded quota"

// forbidDeployments makes a quota for the namespace, and waits until the API server enforces it.
func (e *env) forbidDeployments() *corev1.ResourceQuota {
	e.Event("kubectl create quota none --hard=count/deployments.apps=0")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: e.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}
	e.must(e.client.Create(e.Context(), quota), "creating a quota")
	// The controller that counts is not there.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	e.must(e.client.Status().Update(e.Context(), quota), "simulating the controller of quotas")
	labels := map[string]string{"app": "probe"}
	e.awaitRejection(exceeded, func() client.Object {
		probe := &deployment{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: e.namespace}}
		probe.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		probe.Spec.Template.Labels = labels
		probe.Spec.Template.Spec.Containers = []corev1.Container{{Name: "probe", Image: "probe"}}
		return probe
	})
	return quota
}

// awaitRejection waits until the API server rejects an object with this text. Its admission plugins read from caches.
func (e *env) awaitRejection(text string, probe func() client.Object) {
	e.Eventually(patience, func() string {
		err := e.client.Create(e.Context(), probe(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), text) {
			return "the API server does not reject an object of the check with: " + text
		}
		return ""
	})
}

// tooManyRequests responds to all that writes a Service as a proxy does that protects the API server. Without the header
// Retry-After, client-go leaves the retry to its caller.
func tooManyRequests(r request) *http.Response {
	if r.resource != "services" || !slices.Contains(writeVerbs, r.verb) {
		return nil
	}
	return respond(http.StatusTooManyRequests, "text/plain", "slow down")
}

// lostConnection loses each request that writes a Service.
func lostConnection(r request) *http.Response {
	if r.resource != "services" || !slices.Contains(writeVerbs, r.verb) {
		return nil
	}
	return noResponse
}
