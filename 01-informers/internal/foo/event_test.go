package foo

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	refused := &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: "quota"}
	facts := map[string]Facts{
		"rolling out":  {},
		"available":    {Deployment: deploymentWith(2, all(2))},
		"one of two":   {Deployment: deploymentWith(2, all(1))},
		"none":         {Deployment: deploymentWith(0, all(0))},
		"conflict":     {Refused: NameConflict("web")},
		"refused":      {Refused: refused},
		"other reason": {Refused: &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: "webhook"}},
		"given up":     {Refused: refused, GaveUp: true},
		"failing":      {Refused: Transient(errors.New("no connection"))},
		"failing on":   {Refused: Transient(errors.New("time-out"))},
		"no pods":      {Deployment: deploymentWith(2, with(all(1), condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)))},
	}
	normal := func(reason string) string { return corev1.EventTypeNormal + " " + reason }
	warning := func(reason string) string { return corev1.EventTypeWarning + " " + reason }
	for name, test := range map[string]struct {
		from, to string // from "": no status yet
		want     []string
	}{
		"begins to roll out":         {"", "rolling out", nil},
		"is available at once":       {"", "available", []string{normal(v1alpha1.ReasonAvailable)}},
		"becomes available":          {"rolling out", "available", []string{normal(v1alpha1.ReasonAvailable)}},
		"stays available":            {"available", "available", nil},
		"loses a pod":                {"available", "one of two", nil},
		"gets back from it":          {"one of two", "available", []string{normal(v1alpha1.ReasonAvailable)}},
		"is scaled to zero":          {"rolling out", "none", []string{normal(v1alpha1.ReasonScaledToZero)}},
		"meets a foreign one":        {"", "conflict", []string{warning(v1alpha1.ReasonNameConflict)}},
		"meets a request that fails": {"available", "failing", []string{warning(v1alpha1.ReasonAPIError)}},
		"meets it again":             {"failing", "failing on", nil},
		"has its pods rejected":      {"rolling out", "no pods", []string{warning(v1alpha1.ReasonPodsNotCreated)}},
		"is refused":                 {"", "refused", []string{warning(v1alpha1.ReasonApplyFailed)}},
		"is refused for other text":  {"refused", "other reason", nil},
		"is given up":                {"refused", "given up", []string{warning(v1alpha1.ReasonRetriesExhausted)}},
		"is given up at once":        {"", "given up", []string{warning(v1alpha1.ReasonApplyFailed), warning(v1alpha1.ReasonRetriesExhausted)}},
		"stays given up":             {"given up", "given up", nil},
		"is lifted":                  {"given up", "rolling out", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			before := aFoo()
			if test.from != "" {
				before.Status = Status(before, facts[test.from], start)
			}
			after := Status(before, facts[test.to], later)
			var got []string
			for _, event := range Events(before.Status, after) {
				got = append(got, event.Type+" "+event.Reason)
				g.Expect(event.Note).NotTo(BeEmpty())
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// The API server refuses a longer one (k8s.io/kubernetes/pkg/apis/core/validation/events.go, NoteLengthLimit).
func TestNoteFitsIntoAnEvent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	long := Facts{Refused: &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: strings.Repeat("n", 5000)}}
	after := Status(aFoo(), long, start)
	events := Events(v1alpha1.FooStatus{}, after)
	g.Expect(events).To(HaveLen(1))
	g.Expect(events[0].Note).To(HaveLen(1024))
}
