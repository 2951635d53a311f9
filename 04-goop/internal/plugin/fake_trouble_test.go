package plugin

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What goes wrong between the program and the fake, if a test wants it.

// broken are the next creations, whose connection breaks off.
type broken struct {
	times int
	after bool // they take effect
}

// refused answers with a Status, if the test wants this kind of request refused.
func (f *fake) refused(w http.ResponseWriter, request string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.requests[request]++
	status, ok := f.refuse[request]
	if ok {
		answer(w, int(status.Code), status)
	}
	return ok
}

// breakOff ends the connection of a creation, before or after it took effect, if the test wants that.
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

func (f *fake) refuses(request string, with metav1.Status) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.refuse[request] = with
}

func (f *fake) permits(request string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.refuse, request)
}

// breaksOff lets the connections of the next creations break off: after they took effect, or before.
func (f *fake) breaksOff(times int, after bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.broken = broken{times: times, after: after}
}
