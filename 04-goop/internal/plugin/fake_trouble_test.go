package plugin

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Errors between the program and the fake, as set by tests.

// broken are the next creations, if their connections break off.
type broken struct {
	times int
	after bool // they take effect
}

// rejected responds with a Status, if the test has set one for this kind of request.
func (f *fake) rejected(w http.ResponseWriter, request string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.requests[request]++
	status, ok := f.rejections[request]
	if ok {
		respond(w, int(status.Code), status)
	}
	return ok
}

// breakOff ends the connection of a creation, before or after it took effect, if the test has set that.
func (f *fake) breakOff(after bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.broken.times > 0 && f.broken.after == after {
		f.broken.times--
		panic(http.ErrAbortHandler)
	}
}

func failure(code int32, reason metav1.StatusReason, message, name string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Name: name},
	}
}

func (f *fake) rejects(request string, with metav1.Status) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.rejections[request] = with
}

func (f *fake) permits(request string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.rejections, request)
}

// breaksOff breaks the connections of the next creations, after or before they take effect.
func (f *fake) breaksOff(times int, after bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.broken = broken{times: times, after: after}
}

// isStale makes lists from the watch cache lack existing objects.
func (f *fake) isStale() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.stale = true
}
