package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/shared/apirequest"
)

const operatorName = "operator"

var (
	errLost = errors.New("the connection was lost, by a fault")
	errDead = errors.New("the process has ended, by a fault")
)

// request is what a request is about.
type request struct {
	verb                         string // the HTTP method, or LIST: schedules and the timeline have it
	access                       string // the verb of RBAC
	resource                     schema.GroupResource
	namespace, name, subresource string
	applies                      bool // by server-side apply, which may create
}

// parseRequest reads what a request is about.
func parseRequest(r *http.Request) request {
	info := apirequest.Parse(r)
	parsed := request{
		verb: r.Method, access: info.Verb,
		resource:  schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		namespace: info.Namespace, name: info.Name, subresource: info.Subresource,
		applies: r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType),
	}
	if parsed.resource.Resource == "namespaces" {
		parsed.namespace = "" // it is the name
	}
	switch info.Verb {
	case "list", "watch":
		parsed.verb, parsed.name = "LIST", "" // a field selector may name one object
	case "create":
		// The object has the name.
		if r.GetBody == nil || parsed.name != "" {
			break
		}
		if body, err := r.GetBody(); err == nil {
			content, _ := io.ReadAll(body)
			parsed.name = nameOf(content)
		}
	}
	return parsed
}

func (r request) writes() bool { return r.verb != http.MethodGet && r.verb != "LIST" }

// transport carries the requests of one process of the operator, of a user or of an actor.
type transport struct {
	trial   *trial
	by      func() string // who sends the requests
	process *process      // nil unless it is the operator's
}

// RoundTrip sends a request, unless a fault prevents it, and returns when all watches have seen what it did.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	about := parseRequest(r)
	// An object of the cluster belongs to the trial whose namespace its name begins with.
	if about.namespace == "" && strings.HasPrefix(about.name, clusterName(t.trial.state.Namespace, "")) {
		about.namespace = t.trial.state.Namespace
	}
	if t.process == nil {
		return t.send(r, about, "")
	}
	t.process.requests.Lock()
	defer t.process.requests.Unlock()
	if t.process.dead.Load() {
		return nil, errDead
	}
	at := t.trial.occurrence(about.verb, about.resource, t.trial.symbol(about.resource, about.name), about.subresource)
	t.trial.permissions.note(about, t.trial.object(about) == nil)
	faults := t.trial.hits(at)
	for _, fault := range faults {
		if response, err := t.before(r, about, at, fault); response != nil || err != nil {
			return response, err
		}
	}
	response, err := t.send(r, about, at)
	for _, fault := range faults {
		if err == nil && !t.responds(at, fault) {
			_ = response.Body.Close()
			if t.process.dead.Load() {
				return nil, errDead
			}
			return nil, errLost
		}
	}
	return response, err
}

// before lets a fault happen before a request is sent. If it returns a response or an error, the request is not sent.
func (t *transport) before(r *http.Request, about request, at string, fault Fault) (*http.Response, error) {
	kind, arg, _ := strings.Cut(fault.Kind, "/")
	switch {
	case kind == "lost-before":
		t.trial.line("  %s is lost before it takes effect", at)
		return nil, errLost
	case kind == "crash-before":
		t.trial.line("  the process ends before %s", at)
		t.process.die()
		return nil, errDead
	case strings.HasPrefix(kind, "error-"):
		t.trial.line("  %s gets %s", at, kind)
		return statusError(r, about, strings.TrimPrefix(kind, "error-"))
	case kind == "pause":
		t.trial.line("  the process pauses before %s", at)
		t.process.pause(fault.Arg)
	case kind == "op":
		t.trial.interpose(r.Context(), arg)
	case kind == "clock":
		t.trial.step(fault.Arg)
	}
	return nil, nil
}

// responds lets a fault happen after a request took effect, and reports whether its response arrives.
func (t *transport) responds(at string, fault Fault) bool {
	switch fault.Kind {
	case "time-travel":
		if t.process == t.trial.process { // a paused process may have been replaced
			t.trial.travel = fault.Arg
		}
		fallthrough
	case "crash-after":
		t.trial.line("  the process ends after %s", at)
		t.process.die()
		return false
	case "lost-after":
		t.trial.line("  the response to %s is lost", at)
		return false
	}
	return true
}

// send sends a request, and reports its effect to the trial.
func (t *transport) send(r *http.Request, about request, at string) (*http.Response, error) {
	tr := t.trial
	what := at
	if what == "" {
		what = strings.TrimSpace(fmt.Sprintf("%s: %s %s/%s %s", t.by(), about.verb, about.resource.Resource, tr.symbol(about.resource, about.name), about.subresource))
	}
	if !about.writes() || about.namespace == "" || about.namespace != tr.state.Namespace {
		response, err := tr.server.base.RoundTrip(r)
		if at != "" && err == nil {
			tr.line("  %s → %d", at, response.StatusCode)
		}
		return response, err
	}
	before := tr.object(about)
	response, err := tr.server.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if response.StatusCode >= 300 {
		tr.line("  %s → %d %s", what, response.StatusCode, tr.masked(reasonOf(body)))
		return response, nil
	}
	if err := t.awaitEffect(about, body); err != nil {
		tr.alarm("watches", about.resource.Resource, err.Error())
		return response, nil
	}
	if about.name == "" {
		about.name = nameOf(body)
	}
	after := tr.object(about)
	effect := before == nil || after == nil || before.GetResourceVersion() != after.GetResourceVersion()
	if !effect {
		tr.line("  %s → %d, nothing changed", what, response.StatusCode)
	} else {
		tr.line("  %s → %d", what, response.StatusCode)
		tr.written(r.Context(), Write{By: t.by(), Verb: about.verb, Resource: about.resource, Name: about.name, Before: before, After: after})
	}
	return response, nil
}

// awaitEffect waits until the watch has seen what a request did.
func (t *transport) awaitEffect(about request, body []byte) error {
	var object metav1.PartialObjectMetadata
	var status metav1.Status
	if err := json.Unmarshal(body, &object); err != nil {
		return fmt.Errorf("reading a response: %w", err)
	}
	if object.DeletionTimestamp != nil && len(object.Finalizers) == 0 && (object.DeletionGracePeriodSeconds == nil || *object.DeletionGracePeriodSeconds == 0) {
		// That was the last finalizer. The response has the resourceVersion from before.
		return t.trial.server.hub.awaitGone(about.resource, about.namespace, object.UID)
	}
	if about.verb != http.MethodDelete {
		return t.trial.server.hub.awaitVersion(about.resource, object.ResourceVersion)
	}
	uid := object.UID
	if err := json.Unmarshal(body, &status); err == nil && status.Details != nil {
		uid = status.Details.UID
	}
	return t.trial.server.hub.awaitDeletion(about.resource, about.namespace, uid)
}

func nameOf(body []byte) string {
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(body, &object)
	return object.Name
}

func reasonOf(body []byte) string {
	var status metav1.Status
	_ = json.Unmarshal(body, &status)
	return fmt.Sprintf("%s: %s", status.Reason, status.Message)
}

// object returns the object of a request, as it is now.
func (tr *trial) object(about request) *unstructured.Unstructured {
	if about.name == "" {
		return nil
	}
	for _, object := range tr.server.hub.live(about.namespace, about.resource) {
		if object.GetName() == about.name {
			return object
		}
	}
	return nil
}

// statusError is the response of an API server that rejects a request, with the words that it uses.
func statusError(r *http.Request, about request, code string) (*http.Response, error) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Details: &metav1.StatusDetails{Name: about.name, Group: about.resource.Group, Kind: about.resource.Resource},
	}
	what := fmt.Sprintf("%s %q", about.resource, about.name)
	switch code {
	case "403":
		status.Code, status.Reason, status.Message = 403, metav1.StatusReasonForbidden, what+" is forbidden: exceeded quota: faults"
	case "404":
		status.Code, status.Reason, status.Message = 404, metav1.StatusReasonNotFound, what+" not found"
	case "409":
		status.Code, status.Reason = 409, metav1.StatusReasonConflict
		status.Message = "Operation cannot be fulfilled on " + what + ": the object has been modified; please apply your changes to the latest version and try again"
	case "422":
		status.Code, status.Reason, status.Message = 422, metav1.StatusReasonInvalid, what+" is invalid: spec: Invalid value: a fault"
		status.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: "Invalid value: a fault"}}
	case "429":
		// client-go repeats a request only after a response with Retry-After.
		status.Code, status.Reason, status.Message = 429, metav1.StatusReasonTooManyRequests, "the server has received too many requests and has asked us to try again later"
	case "500":
		status.Code, status.Reason = 500, metav1.StatusReasonInternalError
		status.Message = `Internal error occurred: failed calling webhook "faults.example.com": failed to call webhook: connection refused`
	case "504":
		status.Code, status.Reason, status.Message = 504, metav1.StatusReasonTimeout, "Timeout: request did not complete within requested timeout - context deadline exceeded"
	default:
		return nil, fmt.Errorf("no error %s is known", code)
	}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: fmt.Sprint(status.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}
