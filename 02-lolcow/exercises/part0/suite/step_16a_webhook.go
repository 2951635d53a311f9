package suite

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookFailed is what the API server says when it cannot ask an admission webhook.
const webhookFailed = "failed calling webhook"

// webhookDenied is what the API server says when an admission webhook denies a request.
const webhookDenied = "denied the request: no cows here"

// verdict is what an admission webhook makes of a request.
type verdict int32

const (
	allowing verdict = iota
	// denying leaves the code and the reason of the denial to the API server. They are 400 and none.
	denying
	// failing is a response 500: there is no verdict.
	failing
)

// webhook is an admission webhook for the Services of a namespace.
type webhook struct {
	env     *env
	verdict atomic.Int32
}

// set changes what the webhook does from now on.
func (w *webhook) set(to verdict) {
	w.env.Event("the admission webhook services.example.com %s", map[verdict]string{
		allowing: "allows everything", denying: "denies every request", failing: "responds with 500",
	}[to])
	w.verdict.Store(int32(to))
}

// ServeHTTP responds to a request of the API server.
func (w *webhook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	is := verdict(w.verdict.Load())
	if is == failing || json.NewDecoder(r.Body).Decode(&review) != nil {
		http.Error(rw, "the webhook has no database", http.StatusInternalServerError)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: is == allowing}
	if is == denying {
		review.Response.Result = &metav1.Status{Message: "no cows here"}
	}
	_ = json.NewEncoder(rw).Encode(review)
}

// webhook starts an admission webhook that allows no Service. The API server calls it for each of them.
func (e *env) webhook(first verdict) *webhook {
	w := &webhook{env: e}
	w.set(first)
	server := httptest.NewTLSServer(w)
	e.Cleanup(server.Close)
	e.must(e.client.Create(e.Context(), e.webhookConfiguration(server)), "creating the configuration of a webhook")
	e.awaitRejection(map[verdict]string{denying: webhookDenied, failing: webhookFailed}[first], func() client.Object {
		probe := e.otherService(0)
		probe.Name = "probe"
		return probe
	})
	return w
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
