package foo

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

func deploymentWith(desired int32, status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &desired},
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
	stale, surging, unavailable, old, ending := all(2), all(2), all(2), all(2), all(0)
	ending.TerminatingReplicas = new(int32(1))
	rejected := condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	stalled := condition(appsv1.DeploymentProgressing, corev1.ConditionFalse)
	progressing := condition(appsv1.DeploymentProgressing, corev1.ConditionTrue)
	stale.ObservedGeneration = 1
	surging.Replicas = 3
	unavailable.AvailableReplicas = 1
	old.UpdatedReplicas = 1
	for name, test := range map[string]struct {
		observed Observation
		want     string
	}{
		"nothing there yet":             {Observation{}, v1alpha1.ReasonRollingOut},
		"all available":                 {Observation{Deployment: deploymentWith(2, all(2))}, v1alpha1.ReasonAvailable},
		"status of an older generation": {Observation{Deployment: deploymentWith(2, stale)}, v1alpha1.ReasonRollingOut},
		"an old pod still there":        {Observation{Deployment: deploymentWith(2, surging)}, v1alpha1.ReasonRollingOut},
		"a pod of the old template":     {Observation{Deployment: deploymentWith(2, old)}, v1alpha1.ReasonRollingOut},
		"a pod not available":           {Observation{Deployment: deploymentWith(2, unavailable)}, v1alpha1.ReasonRollingOut},
		"none desired, none left":       {Observation{Deployment: deploymentWith(0, all(0))}, v1alpha1.ReasonScaledToZero},
		"none desired, some left":       {Observation{Deployment: deploymentWith(0, all(1))}, v1alpha1.ReasonRollingOut},
		"none desired, one still ends":  {Observation{Deployment: deploymentWith(0, ending)}, v1alpha1.ReasonRollingOut},
		"pods that are rejected":        {Observation{Deployment: deploymentWith(2, with(unavailable, stalled, rejected))}, v1alpha1.ReasonPodsNotCreated},
		"no progress":                   {Observation{Deployment: deploymentWith(2, with(unavailable, stalled))}, v1alpha1.ReasonProgressDeadlineExceeded},
		"some progress":                 {Observation{Deployment: deploymentWith(2, with(unavailable, progressing))}, v1alpha1.ReasonRollingOut},
		"no progress of an older spec":  {Observation{Deployment: deploymentWith(2, with(stale, stalled, rejected))}, v1alpha1.ReasonRollingOut},
		"no progress, and available":    {Observation{Deployment: deploymentWith(2, with(all(2), stalled, rejected))}, v1alpha1.ReasonAvailable},
		"a request that failed":         {Observation{Deployment: deploymentWith(2, all(2)), Failure: Transient(errors.New("no connection"))}, v1alpha1.ReasonAPIError},
		"rejected, and all available":   {Observation{Deployment: deploymentWith(2, all(2)), Failure: &Failure{Reason: v1alpha1.ReasonApplyFailed}}, v1alpha1.ReasonApplyFailed},
		"a Deployment of the name":      {Observation{Failure: NameConflict("web")}, v1alpha1.ReasonNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ready := readyCondition(test.observed)
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
	observed := Observation{Deployment: deploymentWith(3, appsv1.DeploymentStatus{AvailableReplicas: 1})}
	f.Status = Status(f, observed, start)
	g.Expect(f.Status.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(f.Status.AvailableReplicas).To(Equal(int32(1)))
	ready := ReadyOf(f.Status)
	g.Expect(ready.ObservedGeneration).To(Equal(int64(2)))
	g.Expect(ready.LastTransitionTime).To(Equal(start))

	g.Expect(Status(f, observed, later)).To(Equal(f.Status), "the same observation: in steady state nothing is written")

	observed.Failure = NameConflict("web")
	conflict := Status(f, observed, later)
	g.Expect(ReadyOf(conflict).LastTransitionTime).To(Equal(start), "False before, False now")
	g.Expect(ReadyOf(Status(f, Observation{Deployment: deploymentWith(1, all(1))}, later)).LastTransitionTime).To(Equal(later))
	g.Expect(ReadyOf(f.Status).Reason).To(Equal(v1alpha1.ReasonRollingOut), "the old status is not changed")

	g.Expect(Status(f, Observation{}, later).AvailableReplicas).To(BeZero())
}

// A request that keeps failing is one write of the status, whatever addresses and times are in the errors.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	failing := func(err string) Observation { return Observation{Failure: Transient(errors.New(err))} }
	f.Status = Status(f, failing("applying Deployment web: dial tcp 10.0.0.1:8443: i/o timeout after 10.2s"), start)
	ready := ReadyOf(f.Status)
	g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonAPIError))
	g.Expect(ready.Message).To(Equal("applying Deployment web: dial tcp ADDRESS: i/o timeout after DURATION"))

	g.Expect(Status(f, failing("applying Deployment web: EOF"), later)).To(Equal(f.Status), "another text of the same failure")
	f.Generation++
	g.Expect(ReadyOf(Status(f, failing("applying Deployment web: EOF"), later)).Message).To(HaveSuffix("EOF"), "another spec")
	f.Generation--
	g.Expect(ReadyOf(Status(f, Observation{Failure: NameConflict("web")}, later)).Reason).To(Equal(v1alpha1.ReasonNameConflict))
}

func TestMessageFitsIntoAConditionAndAnEvent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	long := Observation{Failure: &Failure{Reason: v1alpha1.ReasonApplyFailed, Message: strings.Repeat("\u725b", 20000)}}
	message := ReadyOf(Status(aFoo(), long, start)).Message
	g.Expect(len(message)).To(And(BeNumerically("<=", maxConditionMessage), BeNumerically(">", maxConditionMessage-4)))
	g.Expect(message).To(HaveSuffix("\u725b…"), "cut between two characters")
	g.Expect(shorten("short", maxEventNote)).To(Equal("short"))

	// The API server rejects a longer note of an Event (k8s.io/kubernetes/pkg/apis/core/validation/events.go, NoteLengthLimit).
	transitions := Transitions(v1alpha1.FooStatus{}, Status(aFoo(), long, start))
	g.Expect(transitions).To(HaveLen(1))
	g.Expect(len(transitions[0].Note())).To(And(BeNumerically("<=", 1024), BeNumerically(">", 1020)))
}
