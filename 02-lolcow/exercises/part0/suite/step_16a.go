package suite

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
		works := e.failingWebhook()
		e.create("cow", fields{"greeting": "Moo"})
		e.expectFailure(apiError, webhookFailed)
		e.Event("the webhook works again")
		works.Store(true)
		e.expectRecovery(apiError)
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
	s.reconciles("a Conflict is not reported: the next reconciliation reads again, and succeeds", (*env).conflict)
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
	e.Eventually(patience, func() string {
		_, _ = e.reconcile("cow")
		if e.condition("cow", "Ready").Reason == reason {
			return "what failed would succeed now, and the reason is still " + reason
		}
		return ""
	})
	e.settle("cow")
	e.deployment("Moo")
	e.service()
	e.expectReady(metav1.ConditionFalse, rollingOut)
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

// webhookFailed is what the API server says when it cannot ask an admission webhook.
const webhookFailed = "failed calling webhook"

// failingWebhook starts an admission webhook for the Services of the namespace, which responds with 500 until it is set to
// work. The API server calls it for each of them.
func (e *env) failingWebhook() *atomic.Bool {
	e.Event("the admission webhook services.example.com responds with 500")
	works := &atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if !works.Load() || json.NewDecoder(r.Body).Decode(&review) != nil {
			http.Error(w, "the webhook has no database", http.StatusInternalServerError)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	e.Cleanup(server.Close)
	e.must(e.client.Create(e.Context(), e.webhookConfiguration(server)), "creating the configuration of a webhook")
	e.awaitRejection(webhookFailed, func() client.Object {
		probe := e.otherService(0)
		probe.Name = "probe"
		return probe
	})
	return works
}

// webhookConfiguration is for one namespace. The runner deletes it with all else that the check leaves.
func (e *env) webhookConfiguration(server *httptest.Server) *admissionregistrationv1.ValidatingWebhookConfiguration {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "part0-" + e.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "services.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.namespace}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			TimeoutSeconds:          new(int32(30)),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
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

// conflict has another controller change the Deployment between the operator's read and its write.
func (e *env) conflict() {
	e.serve()
	e.change("cow", fields{"greeting": "Baa"})
	var interferes error
	done := false
	e.wire.replace(func(r request) *http.Response {
		if r.resource != "deployments" || !slices.Contains(writeVerbs, r.verb) || done {
			return nil
		}
		done = true
		e.Event("another controller: an annotation of the Deployment %s", r.name)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/other":"moo"}}}`))
		interferes = e.client.Patch(e.Context(), &deployment{ObjectMeta: metav1.ObjectMeta{Name: r.name, Namespace: e.namespace}}, patch)
		return nil
	})
	result, err := e.reconcile("cow")
	e.must(interferes, "changing the Deployment as another controller")
	if ready := e.condition("cow", "Ready"); ready.Reason != serving && ready.Reason != rollingOut {
		e.Fatalf("what was read of the Deployment is out of date, and the condition Ready is %s", describe(ready))
	}
	arrived := slices.ContainsFunc(e.deployments(), func(d deployment) bool { return says(d.Spec.Template, "Baa") })
	if !arrived && e.saysReady() {
		e.Fatalf("the new greeting could not be written, and Ready is True for it")
	}
	if !arrived && !comesAgain(result, err) {
		e.Fatalf("after a Conflict Reconcile %s: nothing triggers another try", returned(err))
	}
	e.Eventually(patience, func() string {
		_, _ = e.reconcile("cow")
		if len(e.deployments()) == 1 && says(e.deployments()[0].Spec.Template, "Baa") {
			return ""
		}
		return "the greeting does not arrive after a Conflict"
	})
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, rollingOut)
}
