package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func statusWith(conditions ...metav1.Condition) v1alpha1.FluxStatus {
	return v1alpha1.FluxStatus{Conditions: conditions}
}

func isTrueWith(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "the message"}
}

func isFalseWith(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "the message"}
}

func TestEventsOfTransitions(t *testing.T) {
	t.Parallel()
	restarted := func(n int32) v1alpha1.FluxStatus {
		status := statusWith(isTrueWith(v1alpha1.ConditionRestarting, v1alpha1.ReasonRestarting))
		status.Restarts = n
		return status
	}
	for name, test := range map[string]struct {
		before, after v1alpha1.FluxStatus
		want          []string
	}{
		"starting": {after: statusWith(
			isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonStarting), isFalseWith(v1alpha1.ConditionRunning, v1alpha1.ReasonStarting),
			isFalseWith(v1alpha1.ConditionSuspended, v1alpha1.ReasonNotSuspended), isFalseWith(v1alpha1.ConditionRestarting, v1alpha1.ReasonNotRestarting))},
		"ready": {after: statusWith(isTrueWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured))},
		"running": {
			after: statusWith(isTrueWith(v1alpha1.ConditionRunning, v1alpha1.ReasonQuorumReached)), want: []string{"Normal Running"},
		},
		"still running": {
			before: statusWith(isTrueWith(v1alpha1.ConditionRunning, v1alpha1.ReasonQuorumReached)),
			after:  statusWith(isTrueWith(v1alpha1.ConditionRunning, v1alpha1.ReasonQuorumReached)),
		},
		"waiting for a temporary problem": {after: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonWaitingForPods))},
		"name taken":                      {after: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonNameConflict)), want: []string{"Warning NameConflict"}},
		"still taken": {
			before: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonNameConflict)),
			after:  statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonNameConflict)),
		},
		"rejected":  {after: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonApplyFailed)), want: []string{"Warning ApplyFailed"}},
		"API error": {after: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonAPIError)), want: []string{"Warning APIError"}},
		"still an API error": {
			before: statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonAPIError)),
			after:  statusWith(isFalseWith(v1alpha1.ConditionSetupReady, v1alpha1.ReasonAPIError)),
		},
		"suspending":      {after: statusWith(isFalseWith(v1alpha1.ConditionSuspended, v1alpha1.ReasonSuspending))},
		"suspended":       {after: statusWith(isTrueWith(v1alpha1.ConditionSuspended, v1alpha1.ReasonSuspended)), want: []string{"Normal Suspended"}},
		"restarting":      {after: restarted(1), want: []string{"Warning Restarting"}},
		"restarted again": {before: restarted(1), after: restarted(2), want: []string{"Warning Restarting"}},
		"still restarted": {before: restarted(2), after: restarted(2)},
		"complete": {
			before: statusWith(isTrueWith(v1alpha1.ConditionRunning, v1alpha1.ReasonQuorumReached)),
			after: statusWith(isFalseWith(v1alpha1.ConditionRunning, v1alpha1.ReasonFinished),
				isTrueWith(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)),
			want: []string{"Normal CommandSucceeded"},
		},
		"failed": {after: statusWith(isTrueWith(v1alpha1.ConditionFailed, v1alpha1.ReasonImageNotPulled)), want: []string{"Warning ImageNotPulled"}},
		"more of a failure": {
			before: statusWith(isTrueWith(v1alpha1.ConditionFailed, v1alpha1.ReasonImageNotPulled)),
			after:  statusWith(isTrueWith(v1alpha1.ConditionFailed, v1alpha1.ReasonImageNotPulled)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var announced []string
			for _, one := range transitions(test.before, test.after) {
				announced = append(announced, one.eventType+" "+one.Reason)
				NewWithT(t).Expect(one.Message).To(Equal("the message"))
			}
			NewWithT(t).Expect(announced).To(Equal(test.want))
		})
	}
}

func TestNotesFitIntoEvents(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, text := range []string{"", "short", strings.Repeat("x", 1024)} {
		g.Expect(shorten(text, maxEventNote)).To(Equal(text))
	}
	for _, letter := range []string{"x", "ä", "…", "\U0001F42E"} {
		short := shorten(strings.Repeat(letter, 2000), maxEventNote)
		g.Expect(len(short)).To(And(BeNumerically("<=", 1024), BeNumerically(">", 1015)))
		g.Expect(utf8.ValidString(short)).To(BeTrue())
		g.Expect(short).To(And(HavePrefix(letter), HaveSuffix("…")))
	}
}
