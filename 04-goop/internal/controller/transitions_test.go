package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

func saying(conditions ...string) v1alpha1.GoopStatus {
	var status v1alpha1.GoopStatus
	for _, one := range conditions {
		kind, rest, _ := strings.Cut(one, "=")
		value, reason, _ := strings.Cut(rest, "/")
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(value), Reason: reason, Message: "m"})
	}
	return status
}

// A transition without an Event type is only logged.
func TestEventsOfTransitions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after v1alpha1.GoopStatus
		want          []string
	}{
		"nothing":        {saying(), saying(), nil},
		"begins":         {saying(), saying("Running=True/Working"), []string{"Normal Working"}},
		"goes on":        {saying("Running=True/Working"), saying("Running=True/Working"), nil},
		"in trouble":     {saying("Running=True/Working"), saying("Running=False/ImageNotPulled"), []string{"Warning ImageNotPulled"}},
		"still":          {saying("Running=True/ImageNotPulled"), saying("Running=False/ImageNotPulled"), nil},
		"healed":         {saying("Running=False/NoEligibleNodes"), saying("Running=True/Working"), []string{"Normal Working"}},
		"suspending":     {saying("Running=True/Working"), saying("Running=False/Suspending", "Suspended=False/Suspending"), []string{" Suspending"}},
		"suspended":      {saying("Suspended=False/Suspending"), saying("Suspended=True/Suspended"), []string{"Normal Suspended"}},
		"complete":       {saying("Running=True/Working"), saying("Running=False/Finished", "Complete=True/Succeeded"), []string{" Finished", "Normal Succeeded"}},
		"failed":         {saying("Running=True/Working"), saying("Running=False/Finished", "Failed=True/DeadlineExceeded"), []string{" Finished", "Warning DeadlineExceeded"}},
		"was over":       {saying("Failed=True/WorkersFailed"), saying("Failed=True/WorkersFailed"), nil},
		"host":           {saying(), saying("Running=False/HostAccessNotAllowed"), []string{"Warning HostAccessNotAllowed"}},
		"made suspended": {saying(), saying("Running=False/Suspended", "Suspended=True/Suspended"), []string{" Suspended", "Normal Suspended"}},
	} {
		var got []string
		for _, one := range transitions(test.before, test.after) {
			got = append(got, one.eventType+" "+one.Reason)
		}
		NewWithT(t).Expect(got).To(Equal(test.want), name)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(shorten("as it is", 8)).To(Equal("as it is"))
	for limit := 3; limit < 20; limit++ {
		short := shorten(strings.Repeat("牛", 20), limit)
		g.Expect(len(short)).To(BeNumerically("<=", limit))
		g.Expect(utf8.ValidString(short)).To(BeTrue())
		g.Expect(short).To(HaveSuffix("…"))
	}
}
