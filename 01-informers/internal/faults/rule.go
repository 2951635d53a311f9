package faults

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is a way to fail.
type Fault int

const (
	// Gone answers 410 with reason Expired: the resourceVersion asked for is too old.
	Gone Fault = iota + 1
	// TooManyRequests answers 429, with a Retry-After header if the rule has one.
	TooManyRequests
	// InternalError answers 500.
	InternalError

	// GoneEvent says in a watch that its resourceVersion is too old, as an ERROR event with a Status, and
	// ends it in order.
	GoneEvent
	// Hang leaves a watch open, and lets nothing through any more, not even its end.
	Hang
	// Cut ends a watch in the middle of an event, as if it were done.
	Cut
	// Break breaks a watch off in the middle of an event: HTTP/2 gives up the stream, HTTP/1.1 the
	// connection.
	Break
)

var faultNames = map[Fault]string{
	Gone: "410", TooManyRequests: "429", InternalError: "500",
	GoneEvent: "410 event", Hang: "hang", Cut: "cut", Break: "break",
}

func (f Fault) String() string { return faultNames[f] }

// inStream tells the faults that need a watch under way from those that answer a request.
func (f Fault) inStream() bool { return f >= GoneEvent }

// Rule says what is to fail, and how.
type Rule struct {
	// Fault is how. GoneEvent, Hang, Cut and Break strike watches only.
	Fault Fault
	// Verb and Resource say what: see Request. An empty one matches all.
	Verb, Resource string
	// Times is how often it strikes. 0: until it is lifted.
	Times int
	// RetryAfter goes with TooManyRequests. Its unit in HTTP is the second. 0: none.
	RetryAfter time.Duration
	// Whole is how many events Cut and Break let through before the one that they tear apart.
	Whole int
}

// Failure is a rule in force.
type Failure struct {
	rule   Rule
	struck atomic.Int64
	lifted atomic.Bool
}

// Struck is how often it has struck.
func (f *Failure) Struck() int { return int(f.struck.Load()) }

// Lift ends it. What it has struck stays struck: a watch that hangs goes on hanging.
func (f *Failure) Lift() { f.lifted.Store(true) }

func (f *Failure) matches(r Request) bool {
	return !f.lifted.Load() && matches(f.rule.Verb, r.Verb) && matches(f.rule.Resource, r.Resource) &&
		(!f.rule.Fault.inStream() || r.Watch())
}

// strike tells whether it may strike once more, and counts that.
func (f *Failure) strike() bool {
	if f.lifted.Load() {
		return false
	}
	if n := f.struck.Add(1); f.rule.Times > 0 && int(n) > f.rule.Times {
		f.struck.Add(-1)
		return false
	}
	return true
}

// status is what the server would say.
func (f *Failure) status() *metav1.Status {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
	}
	switch f.rule.Fault {
	case TooManyRequests:
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		status.Message = "too many requests, please try again later"
		if seconds := f.seconds(); seconds > 0 {
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
		}
	case InternalError:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
		status.Message = "Internal error occurred: made to fail"
	default:
		status.Code, status.Reason = http.StatusGone, metav1.StatusReasonExpired
		status.Message = "too old resource version: made to fail"
	}
	return status
}

func (f *Failure) seconds() int32 { return int32(f.rule.RetryAfter / time.Second) }

// answer sends the status instead of what the server would have answered.
func (f *Failure) answer(w http.ResponseWriter) error {
	status := f.status()
	body, err := encode(jsonType, status)
	if err != nil {
		return fmt.Errorf("answering with a %s: %w", f.rule.Fault, err)
	}
	w.Header().Set("Content-Type", jsonType)
	if seconds := f.seconds(); seconds > 0 && f.rule.Fault == TooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	w.WriteHeader(int(status.Code))
	_, err = w.Write(body)
	return err
}
