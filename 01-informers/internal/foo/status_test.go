package foo

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

func deploymentWith(wanted int32, status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &wanted},
		Status:     status,
	}
}

func all(n int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n}
}

func condition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: status, Message: "the Deployment controller says"}
}

func with(status appsv1.DeploymentStatus, conditions ...appsv1.DeploymentCondition) appsv1.DeploymentStatus {
	status.Conditions = conditions
	return status
}

var (
	start = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(start.Add(time.Hour))
)

func TestReadyCondition(t *testing.T) {
	t.Parallel()
	stale, surging, unavailable, old := all(2), all(2), all(2), all(2)
	rejected := condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	stalled := condition(appsv1.DeploymentProgressing, corev1.ConditionFalse)
	progressing := condition(appsv1.DeploymentProgressing, corev1.ConditionTrue)
	stale.ObservedGeneration = 1
	surging.Replicas = 3
	unavailable.AvailableReplicas = 1
	old.UpdatedReplicas = 1
	for name, test := range map[string]struct {
		seen Facts
		want string
	}{
		"nothing there yet":             {Facts{}, v1alpha1.ReasonRollingOut},
		"all available":                 {Facts{Deployment: deploymentWith(2, all(2))}, v1alpha1.ReasonAvailable},
		"status of an older generation": {Facts{Deployment: deploymentWith(2, stale)}, v1alpha1.ReasonRollingOut},
		"an old pod still there":        {Facts{Deployment: deploymentWith(2, surging)}, v1alpha1.ReasonRollingOut},
		"a pod of the old template":     {Facts{Deployment: deploymentWith(2, old)}, v1alpha1.ReasonRollingOut},
		"a pod not available":           {Facts{Deployment: deploymentWith(2, unavailable)}, v1alpha1.ReasonRollingOut},
		"none wanted, none left":        {Facts{Deployment: deploymentWith(0, all(0))}, v1alpha1.ReasonScaledToZero},
		"none wanted, some left":        {Facts{Deployment: deploymentWith(0, all(1))}, v1alpha1.ReasonRollingOut},
		"pods that are rejected":        {Facts{Deployment: deploymentWith(2, with(unavailable, stalled, rejected))}, v1alpha1.ReasonPodsNotCreated},
		"no progress":                   {Facts{Deployment: deploymentWith(2, with(unavailable, stalled))}, v1alpha1.ReasonProgressDeadlineExceeded},
		"some progress":                 {Facts{Deployment: deploymentWith(2, with(unavailable, progressing))}, v1alpha1.ReasonRollingOut},
		"no progress of an older spec":  {Facts{Deployment: deploymentWith(2, with(stale, stalled, rejected))}, v1alpha1.ReasonRollingOut},
		"no progress, and available":    {Facts{Deployment: deploymentWith(2, with(all(2), stalled, rejected))}, v1alpha1.ReasonAvailable},
		"a request that failed":         {Facts{Deployment: deploymentWith(2, all(2)), Refused: Transient(errors.New("no connection"))}, v1alpha1.ReasonAPIError},
		"refused, though all available": {Facts{Deployment: deploymentWith(2, all(2)), Refused: &Refusal{Reason: v1alpha1.ReasonApplyFailed}}, v1alpha1.ReasonApplyFailed},
		"somebody else's":               {Facts{Refused: NameConflict("web")}, v1alpha1.ReasonNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ready := readyCondition(test.seen)
			g.Expect(ready.Reason).To(Equal(test.want))
			want := metav1.ConditionFalse
			if test.want == v1alpha1.ReasonAvailable {
				want = metav1.ConditionTrue
			}
			g.Expect(ready.Status).To(Equal(want))
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	seen := Facts{Deployment: deploymentWith(3, appsv1.DeploymentStatus{AvailableReplicas: 1})}
	f.Status = Status(f, seen, start)
	g.Expect(f.Status.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(f.Status.AvailableReplicas).To(Equal(int32(1)))
	ready := ReadyOf(f.Status)
	g.Expect(ready.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(ready.LastTransitionTime).To(Equal(start))

	g.Expect(Status(f, seen, later)).To(Equal(f.Status), "the same facts are no change: at rest nothing is written")

	seen.Refused = NameConflict("web")
	conflict := Status(f, seen, later)
	g.Expect(ReadyOf(conflict).LastTransitionTime).To(Equal(start), "False before, False now")
	g.Expect(ReadyOf(Status(f, Facts{Deployment: deploymentWith(1, all(1))}, later)).LastTransitionTime).To(Equal(later))
	g.Expect(ReadyOf(f.Status).Reason).To(Equal(v1alpha1.ReasonRollingOut), "the old status is not touched")

	g.Expect(Status(f, Facts{}, later).AvailableReplicas).To(BeZero())
}

func TestStalledComesAndGoes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	refused := &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: "no"}
	f.Status = Status(f, Facts{Refused: refused}, start)
	g.Expect(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
	g.Expect(Stalled(f)).To(BeFalse())

	f.Status = Status(f, Facts{Refused: refused, GaveUp: true}, start)
	stalled := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)
	g.Expect(stalled.Reason).To(Equal(v1alpha1.ReasonRetriesExhausted))
	g.Expect(stalled.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(Stalled(f)).To(BeTrue())
	g.Expect(reported(f)).To(Equal(refused))

	f.Generation = 3
	g.Expect(Stalled(f)).To(BeFalse(), "another spec")
	told := reported(f) != nil
	g.Expect(told).To(BeFalse())
	f.Status = Status(f, Facts{}, later)
	g.Expect(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
}

// A request that keeps failing is one write of the status, whatever the errors say of addresses and times.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	failing := func(err string) Facts { return Facts{Refused: Transient(errors.New(err))} }
	f.Status = Status(f, failing("applying Deployment web: dial tcp 10.0.0.1:8443: i/o timeout after 10.2s"), start)
	ready := ReadyOf(f.Status)
	g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonAPIError))
	g.Expect(ready.Message).To(Equal("applying Deployment web: dial tcp ADDRESS: i/o timeout after DURATION"))

	g.Expect(Status(f, failing("applying Deployment web: EOF"), later)).To(Equal(f.Status), "another text of the same failure")
	f.Generation++
	g.Expect(ReadyOf(Status(f, failing("applying Deployment web: EOF"), later)).Message).To(HaveSuffix("EOF"), "another spec")
	f.Generation--
	g.Expect(ReadyOf(Status(f, Facts{Refused: NameConflict("web")}, later)).Reason).To(Equal(v1alpha1.ReasonNameConflict))
}

func TestMessageFitsIntoACondition(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	long := Facts{Refused: &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: strings.Repeat("\u725b", 20000)}}
	message := ReadyOf(Status(aFoo(), long, start)).Message
	g.Expect(len(message)).To(And(BeNumerically("<=", maxConditionMessage), BeNumerically(">", maxConditionMessage-4)))
	g.Expect(message).To(HaveSuffix("\u725b…"), "cut between two characters")
	g.Expect(shorten("short", maxEventNote)).To(Equal("short"))
}
