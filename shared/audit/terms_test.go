package audit

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// sent is a request of a writer, received and responded at seconds of the test's own time.
func sent(by, resource string, at, responded float64, code int32) Event {
	moment := func(seconds float64) metav1.MicroTime {
		return metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second))))
	}
	group := map[string]string{"leases": "coordination.k8s.io", "deployments": "apps"}[resource]
	return Event{
		Verb: "update", UserAgent: by,
		User:                     authenticationv1.UserInfo{Username: operatorUser},
		ObjectRef:                &auditv1.ObjectReference{APIGroup: group, Resource: resource, Namespace: "a", Name: "moo"},
		ResponseStatus:           &metav1.Status{Code: code},
		RequestReceivedTimestamp: moment(at), StageTimestamp: moment(responded),
	}
}

func lease(by string, at float64) Event { return sent(by, "leases", at, at+0.01, 200) }
func write(by string, at float64) Event { return sent(by, "deployments", at, at+0.01, 200) }

// handover is a leader that is killed at second 5, and another that takes over at 19.1.
var handover = []Event{
	lease("a", 0), write("a", 0.5), lease("a", 2), write("a", 3), lease("a", 4), write("a", 4.9),
	sent("b", "leases", 4.5, 4.6, 409), lease("b", 19.1), write("b", 19.2), lease("b", 21.1), write("b", 22),
}

func terms(events ...Event) ([]Term, error) {
	return Terms(events, func(e *Event) string { return e.UserAgent }, 15*time.Second)
}

func TestTerms(t *testing.T) {
	got, err := terms(handover...)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Writer != "a" || got[1].Writer != "b" {
		t.Fatalf("got %+v, want the terms of a and b", got)
	}
	if len(got[0].Leases) != 3 || len(got[0].Writes) != 3 || len(got[1].Leases) != 2 || len(got[1].Writes) != 2 {
		t.Errorf("got %d and %d writes to the lease, %d and %d others", len(got[0].Leases), len(got[1].Leases), len(got[0].Writes), len(got[1].Writes))
	}
	if gap := got[1].Began().Sub(got[0].Last()); gap != 14190*time.Millisecond {
		t.Errorf("got %s without a leader, want 14.19 s", gap)
	}
}

func TestTermsFindTwoWriters(t *testing.T) {
	for what, test := range map[string]struct {
		more Event
		want string
	}{
		"a writer without a lease":                  {write("c", 1), "c never held the lease"},
		"a writer whose lease was rejected":         {sent("c", "leases", 20, 20.1, 409), ""},
		"a write before the lease is acquired":      {write("b", 18), "b wrote before it acquired the lease"},
		"a write of the old leader after the new's": {write("a", 19.15), "a still wrote when b acquired the lease"},
		"one that was rejected, too":                {sent("a", "deployments", 19.15, 19.16, 409), "a still wrote when b acquired the lease"},
		"one that was under way":                    {sent("a", "deployments", 18, 19.3, 200), "a still wrote when b acquired the lease"},
		"a renewal of the old leader":               {lease("a", 19.15), "a still wrote when b acquired the lease"},
		"a write with a lease that has run out":     {write("b", 37), "b wrote with a lease that it last renewed at 00:00:21.100"},
	} {
		_, err := terms(append([]Event{test.more}, handover...)...)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got error %v, want %q", what, err, test.want)
		}
	}
}

func TestTermsLeaveOutWhatIsNoWork(t *testing.T) {
	review := sent("c", "tokenreviews", 1, 1.1, 201)
	review.ObjectRef.APIGroup, review.ObjectRef.Namespace = "authentication.k8s.io", ""
	read := sent("c", "deployments", 1, 1.1, 200)
	read.Verb = "get"
	if _, err := terms(append([]Event{review, read}, handover...)...); err != nil {
		t.Error(err)
	}
}
