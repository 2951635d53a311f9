package foo

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

func TestTransitions(t *testing.T) {
	t.Parallel()
	rejected := &Failure{Reason: v1alpha1.ReasonApplyFailed, Message: "quota"}
	observed := map[string]Observation{
		"rolling out":  {},
		"available":    {Deployment: deploymentWith(2, all(2))},
		"one of two":   {Deployment: deploymentWith(2, all(1))},
		"none":         {Deployment: deploymentWith(0, all(0))},
		"conflict":     {Failure: NameConflict("web")},
		"rejected":     {Failure: rejected},
		"other reason": {Failure: &Failure{Reason: v1alpha1.ReasonApplyFailed, Message: "webhook"}},
		"stalled":      {Failure: rejected, Exhausted: true},
		"failing":      {Failure: Transient(errors.New("no connection"))},
		"failing on":   {Failure: Transient(errors.New("time-out"))},
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
		"recovers from it":           {"one of two", "available", []string{normal(v1alpha1.ReasonAvailable)}},
		"is scaled to zero":          {"rolling out", "none", []string{normal(v1alpha1.ReasonScaledToZero)}},
		"has a name conflict":        {"", "conflict", []string{warning(v1alpha1.ReasonNameConflict)}},
		"has a request that fails":   {"available", "failing", []string{warning(v1alpha1.ReasonAPIError)}},
		"has another one":            {"failing", "failing on", nil},
		"has its pods rejected":      {"rolling out", "no pods", []string{warning(v1alpha1.ReasonPodsNotCreated)}},
		"is rejected":                {"", "rejected", []string{warning(v1alpha1.ReasonApplyFailed)}},
		"is rejected for other text": {"rejected", "other reason", nil},
		"is stalled":                 {"rejected", "stalled", []string{warning(v1alpha1.ReasonRetriesExhausted)}},
		"is stalled at once":         {"", "stalled", []string{warning(v1alpha1.ReasonApplyFailed), warning(v1alpha1.ReasonRetriesExhausted)}},
		"stays stalled":              {"stalled", "stalled", nil},
		"is tried again":             {"stalled", "rolling out", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			before := aFoo()
			if test.from != "" {
				before.Status = Status(before, observed[test.from], start)
			}
			after := Status(before, observed[test.to], later)
			var got []string
			for _, transition := range Transitions(before.Status, after) {
				g.Expect(transition.Note()).NotTo(BeEmpty())
				if transition.EventType != "" {
					got = append(got, transition.EventType+" "+transition.Reason)
				}
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}
