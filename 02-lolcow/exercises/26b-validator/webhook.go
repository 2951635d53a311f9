package validator

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// history is a user for whose requests the webhook is not called. What it writes is from before there was one.
const history = "history"

// webhook serves until the program ends. Each scene has a handler of its own.
type webhook struct {
	current atomic.Pointer[admission.Webhook]
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.current.Load().ServeHTTP(rw, r)
}

func (w *webhook) set(handler admission.Handler) {
	w.current.Store(&admission.Webhook{Handler: handler})
}

// install has the API server call the webhook, and waits until it does.
func (w *webhook) install(b *check.B) {
	const answer = "the probe has arrived"
	w.set(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied(answer) }))
	s := newScene(b)
	scheme := runtime.NewScheme()
	_ = admissionregistrationv1.AddToScheme(scheme) // it only adds to maps
	c, err := client.New(kube.Config(b), client.Options{Scheme: scheme})
	if err == nil {
		err = c.Create(b.Context(), configuration(httptest.NewTLSServer(w)))
	}
	if err != nil {
		b.Fatalf("creating the configuration of the webhook: %v", err)
	}
	b.Eventually(patience, func() string {
		err := s.client.Create(b.Context(), s.lolcow("probe", nil), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), answer) {
			return "the API server does not call the webhook"
		}
		return ""
	})
	w.allow()
}

func (w *webhook) allow() {
	w.set(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
}

func configuration(server *httptest.Server) *admissionregistrationv1.ValidatingWebhookConfiguration {
	group := v1beta1.SchemeGroupVersion
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "lolcows.my.domain"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "lolcows.my.domain",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{
					admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
				},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{group.Group}, APIVersions: []string{group.Version}, Resources: []string{"lolcows"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "not-from-before", Expression: `request.userInfo.username != "` + history + `"`,
			}},
			// In production this is Fail. Here the runner deletes what is left, when the program has ended.
			FailurePolicy:           new(admissionregistrationv1.Ignore),
			TimeoutSeconds:          new(int32(30)),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// scene is one in which the reader's handler is called. Its requests go by the wire.
func (w *webhook) scene(b *check.B, entry Entry) *scene {
	s := newScene(b)
	handler := entry(newClient(b, s.wire.Config()))
	w.set(admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		b.Event("  the handler is called: %s %s/%s", request.Operation, request.Namespace, request.Name)
		response := handler.Handle(ctx, request)
		b.Event("  its response: allowed: %t", response.Allowed)
		return response
	}))
	b.Cleanup(w.allow)
	return s
}

// clash creates two Lolcows, cow and calf, that have the same two ports.
func (s *scene) clash() {
	config := kube.Config(s.b)
	config.Impersonate = rest.ImpersonationConfig{UserName: history, Groups: []string{"system:masters"}}
	c := newClient(s.b, config)
	for _, name := range []string{"cow", "calf"} {
		ports := []v1beta1.LolcowPort{port("page", s.number(0)), port("api", s.number(1))}
		if err := c.Create(s.b.Context(), s.lolcow(name, ports)); err != nil {
			s.b.Fatalf("creating a Lolcow from before the webhook: %v", err)
		}
	}
}
