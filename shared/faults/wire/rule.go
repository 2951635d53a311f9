package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is a way in which a request or a watch fails.
type Fault int

const (
	// Gone responds with 410 and reason Expired: the requested resourceVersion is too old.
	Gone Fault = iota + 1
	// TooManyRequests responds with 429, and with a Retry-After header if the rule has one.
	TooManyRequests
	// InternalError responds with 500.
	InternalError

	// GoneEvent sends an event of type ERROR in a watch, with a Status that says that the resourceVersion is too old, and
	// then ends the watch without an error.
	GoneEvent
	// Hang keeps a watch open and forwards nothing any more, not even its end.
	Hang
	// Cut ends a watch in the middle of an event without an error.
	Cut
	// Break ends a watch in the middle of an event with an error: the HTTP/2 stream is reset, the HTTP/1.1 connection closed.
	Break
)

var faultNames = map[Fault]string{
	Gone: "410", TooManyRequests: "429", InternalError: "500",
	GoneEvent: "410 event", Hang: "hang", Cut: "cut", Break: "break",
}

func (f Fault) String() string { return faultNames[f] }

// inStream reports whether the fault happens in an open watch. The others are responses to a request.
func (f Fault) inStream() bool { return f >= GoneEvent }

// Rule says which requests fail, and how.
type Rule struct {
	// Fault is how they fail. GoneEvent, Hang, Cut and Break apply to watches only.
	Fault Fault
	// Verb and Resource select requests: see Request. An empty one matches all.
	Verb, Resource string
	// Times is how many requests fail. 0: all, until Injection.Stop is called.
	Times int
	// RetryAfter is for TooManyRequests, in whole seconds. 0: no header.
	RetryAfter time.Duration
	// Whole is how many events Cut and Break forward before the one that they end in the middle of.
	Whole int
}

// String is "429 with Retry-After: 1" or "cut after 2 events".
func (r Rule) String() string {
	text := r.Fault.String()
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" with Retry-After: %d", r.seconds())
	}
	if r.Whole > 0 {
		text += fmt.Sprintf(" after %d events", r.Whole)
	}
	return text
}

func (r Rule) seconds() int { return int(r.RetryAfter / time.Second) }

// Injection is a rule in effect.
type Injection struct {
	rule    Rule
	count   atomic.Int64
	stopped atomic.Bool
}

// Count is how many requests and watches it has made fail.
func (i *Injection) Count() int { return int(i.count.Load()) }

// Stop ends it for new requests. A watch that hangs continues to hang.
func (i *Injection) Stop() { i.stopped.Store(true) }

func (i *Injection) matches(r Request) bool {
	return !i.stopped.Load() && matches(i.rule.Verb, r.Verb) && matches(i.rule.Resource, r.Resource) &&
		(!i.rule.Fault.inStream() || r.Watch())
}

// take reports whether one more request is to fail, and counts it.
func (i *Injection) take() bool {
	if i.stopped.Load() {
		return false
	}
	if n := i.count.Add(1); i.rule.Times > 0 && int(n) > i.rule.Times {
		i.count.Add(-1)
		return false
	}
	return true
}

// status is what the API server would respond with.
func (i *Injection) status() *metav1.Status {
	var err *apierrors.StatusError
	switch i.rule.Fault {
	case TooManyRequests:
		err = apierrors.NewTooManyRequests("too many requests, please try again later", i.rule.seconds())
	case InternalError:
		err = apierrors.NewInternalError(errors.New("an injected fault"))
	default:
		err = apierrors.NewResourceExpired("too old resource version: an injected fault")
	}
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

// respond sends the status in place of the API server's response.
func (i *Injection) respond(w http.ResponseWriter) error {
	status := i.status()
	body, err := encode(jsonType, status)
	if err != nil {
		return fmt.Errorf("responding with %s: %w", i.rule, err)
	}
	w.Header().Set("Content-Type", jsonType)
	if seconds := i.rule.seconds(); seconds > 0 && i.rule.Fault == TooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.WriteHeader(int(status.Code))
	_, err = w.Write(body)
	return err
}
