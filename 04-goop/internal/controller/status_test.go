package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

var started = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// seeing returns the observation of a Goop that was started a minute ago on nodes a and b, where no worker has finished.
func seeing(change ...func(*observation)) *observation {
	seen := newObservation(aGoop(), started.Add(time.Minute))
	seen.complete, seen.eligible = true, []string{"a", "b"}
	seen.goop.Generation = 7
	seen.record.Start(started)
	for _, one := range change {
		one(seen)
	}
	return seen
}

func withSpec(change func(*v1alpha1.GoopSpec)) func(*observation) {
	return func(f *observation) { change(&f.goop.Spec) }
}

func finishedOn(node string, exitCode int32) func(*observation) {
	return func(f *observation) {
		f.record.Finish(record.Finish{Place: plan.Place{Node: node}, ExitCode: exitCode, Tries: 1, Output: "out"})
	}
}

func isSuspended(f *observation) { f.goop.Spec.Suspend, f.stopping = true, true }
func isUnreadable(f *observation) {
	f.damage = &failure{v1alpha1.ReasonRecordUnreadable, "line 3"}
}
func withRunning(f *observation) { f.work.running, f.work.unfinished = 1, 1 }
func wasSuspended(f *observation) {
	f.goop.Status.Conditions = append(f.goop.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSuspended})
}

func isEnded(f *observation) {
	f.stopping = true
	f.goop.Status.Conditions = append(f.goop.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded})
}

func TestRunningCondition(t *testing.T) {
	t.Parallel()
	inTrouble := func(f *observation) {
		f.work.notStarted = &startFailure{reason: v1alpha1.ReasonImageNotPulled, message: "m"}
	}
	unplanned := func(err error) func(*observation) { return func(f *observation) { f.unplanned = err } }
	tooMany := unplanned(&plan.TooManyRoundsError{JobCount: 65, Nodes: 2, Excess: 1})
	rejected := func(f *observation) { f.failure = failureOf(nameConflict("DaemonSet job-0")) }
	host := func(f *observation) { f.hostRejected, f.stopping = true, true }
	for name, test := range map[string]struct {
		seen   *observation
		status metav1.ConditionStatus
		reason string
	}{
		"about to":                 {seeing(), metav1.ConditionTrue, v1alpha1.ReasonWorking},
		"at work":                  {seeing(withRunning), metav1.ConditionTrue, v1alpha1.ReasonWorking},
		"no pods":                  {seeing(func(f *observation) { f.noPods = true }), metav1.ConditionFalse, v1alpha1.ReasonPodsNotCreated},
		"in trouble":               {seeing(inTrouble), metav1.ConditionFalse, v1alpha1.ReasonImageNotPulled},
		"one of two in trouble":    {seeing(inTrouble, withRunning), metav1.ConditionTrue, v1alpha1.ReasonImageNotPulled},
		"no node":                  {seeing(unplanned(plan.ErrNoEligibleNodes), inTrouble), metav1.ConditionFalse, v1alpha1.ReasonNoEligibleNodes},
		"too many":                 {seeing(tooMany), metav1.ConditionFalse, v1alpha1.ReasonTooManyRounds},
		"conflict":                 {seeing(rejected, tooMany), metav1.ConditionFalse, v1alpha1.ReasonNameConflict},
		"conflict, others at work": {seeing(rejected, withRunning), metav1.ConditionTrue, v1alpha1.ReasonNameConflict},
		"suspended":                {seeing(isSuspended), metav1.ConditionFalse, v1alpha1.ReasonSuspended},
		"suspended, and rejected":  {seeing(isSuspended, rejected), metav1.ConditionFalse, v1alpha1.ReasonNameConflict},
		"suspending":               {seeing(isSuspended, withRunning), metav1.ConditionFalse, v1alpha1.ReasonSuspending},
		"host":                     {seeing(host, isSuspended, withRunning), metav1.ConditionFalse, v1alpha1.ReasonHostAccessNotAllowed},
		"ended":                    {seeing(isEnded, withRunning, rejected), metav1.ConditionFalse, v1alpha1.ReasonFinished},
	} {
		g := NewWithT(t)
		running := conditionOf(desiredStatus(test.seen).Conditions, v1alpha1.ConditionRunning)
		g.Expect(running.Status).To(Equal(test.status), name)
		g.Expect(running.Reason).To(Equal(test.reason), name)
		g.Expect(running.ObservedGeneration).To(Equal(int64(7)), name)
		g.Expect(running.Message).NotTo(BeEmpty(), name)
	}
}

func TestSuspendedCondition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen   *observation
		status metav1.ConditionStatus
		reason string
	}{
		"never":      {seeing(), "", ""},
		"suspending": {seeing(isSuspended, withRunning), metav1.ConditionFalse, v1alpha1.ReasonSuspending},
		"unobserved": {seeing(isSuspended, func(f *observation) { f.losing = true }), metav1.ConditionFalse, v1alpha1.ReasonSuspending},
		"suspended":  {seeing(isSuspended), metav1.ConditionTrue, v1alpha1.ReasonSuspended},
		"resumed":    {seeing(wasSuspended), metav1.ConditionFalse, v1alpha1.ReasonResumed},
	} {
		suspended := conditionOf(desiredStatus(test.seen).Conditions, v1alpha1.ConditionSuspended)
		NewWithT(t).Expect(suspended.Status).To(Equal(test.status), name)
		NewWithT(t).Expect(suspended.Reason).To(Equal(test.reason), name)
	}
}

func TestEndOfTheWork(t *testing.T) {
	t.Parallel()
	noNodes := func(f *observation) { f.eligible = nil }
	two := withSpec(workers(2))
	for name, test := range map[string]struct {
		seen   *observation
		reason string
		wait   time.Duration
	}{
		"under way":                      {seeing(), "", 0},
		"one of two":                     {seeing(finishedOn("a", 0)), "", 0},
		"all":                            {seeing(finishedOn("a", 0), finishedOn("b", 0)), v1alpha1.ReasonSucceeded, 0},
		"all, and one that has left":     {seeing(finishedOn("a", 0), finishedOn("b", 0), finishedOn("c", 0)), v1alpha1.ReasonSucceeded, 0},
		"all that are left":              {seeing(finishedOn("a", 0), noNodes), v1alpha1.ReasonSucceeded, 0},
		"none, as there is no node":      {seeing(noNodes), "", 0},
		"all, and one has failed":        {seeing(finishedOn("a", 0), finishedOn("b", 1)), v1alpha1.ReasonWorkersFailed, 0},
		"as many":                        {seeing(two, finishedOn("x", 0), finishedOn("y", 0)), v1alpha1.ReasonSucceeded, 0},
		"not as many":                    {seeing(two, finishedOn("a", 0)), "", 0},
		"failed":                         {seeing(finishedOn("a", 1)), "", 0},
		"failed, and FailFast":           {seeing(withSpec(failFast), finishedOn("a", 1)), v1alpha1.ReasonWorkersFailed, 0},
		"suspended, failed, FailFast":    {seeing(isSuspended, withSpec(failFast), finishedOn("a", 1)), v1alpha1.ReasonWorkersFailed, 0},
		"suspended when all was done":    {seeing(isSuspended, two, finishedOn("a", 0), finishedOn("b", 0)), v1alpha1.ReasonSucceeded, 0},
		"before the deadline":            {seeing(withSpec(deadline(61))), "", time.Second},
		"at the deadline":                {seeing(withSpec(deadline(60))), v1alpha1.ReasonDeadlineExceeded, 0},
		"at the deadline, all was done":  {seeing(withSpec(deadline(60)), finishedOn("a", 0), finishedOn("b", 0)), v1alpha1.ReasonSucceeded, 0},
		"at the deadline, suspended":     {seeing(isSuspended, withSpec(deadline(60))), "", 0},
		"ended already":                  {seeing(isEnded, withSpec(deadline(60))), "", 0},
		"at the deadline, but unstarted": {seeing(func(f *observation) { f.record = newRecord() }, withSpec(deadline(60))), "", 0},
		"the record cannot be read":      {seeing(isUnreadable, withSpec(deadline(60))), "", 0},
	} {
		end, wait := endOf(test.seen)
		reason := ""
		if end != nil {
			reason = end.reason
		}
		NewWithT(t).Expect(reason).To(Equal(test.reason), name)
		NewWithT(t).Expect(wait).To(Equal(test.wait), name)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	status := desiredStatus(seeing(finishedOn("a", 3), finishedOn("gone", 0), withRunning))
	g.Expect([]int32{status.Desired, status.Running, status.Succeeded, status.Failed}).To(Equal([]int32{3, 1, 1, 1}), "a, b, and a node that was deleted")
	g.Expect(*status.ExitCode).To(Equal(int32(3)))
	g.Expect(status.Failures).To(Equal([]v1alpha1.Failure{{Node: "a", ExitCode: 3, Output: "out"}}))
	g.Expect(status.StartTime.Time).To(BeTemporally("==", started))
	g.Expect(desiredStatus(seeing()).ExitCode).To(BeNil(), "nothing has finished")

	// After the end the counts stay, whatever happens to the record.
	over := seeing(isEnded, withRunning)
	over.goop.Status.Succeeded, over.goop.Status.Desired, over.record = 9, 9, newRecord()
	status = desiredStatus(over)
	g.Expect([]int32{status.Desired, status.Running, status.Succeeded}).To(Equal([]int32{9, 1, 9}), "except workers that are terminating")

	lost := seeing(isUnreadable, func(f *observation) { f.record = newRecord() })
	lost.goop.Status.Succeeded = 5
	g.Expect(desiredStatus(lost).Succeeded).To(Equal(int32(5)))
}

// A status is below 64 KiB, whatever workers write and whatever fails.
func TestSizeOfAStatus(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	seen := seeing(isSuspended, func(f *observation) {
		for i := range 5000 {
			node := fmt.Sprintf("%s%04d", strings.Repeat("n", 249), i)
			f.record.Finish(record.Finish{Place: plan.Place{Node: node, Round: 31}, ExitCode: 255, Tries: 1001, Output: strings.Repeat("\x01", 4096)})
		}
		f.goop.Spec.Suspend = false
		f.failure = &failure{reason: v1alpha1.ReasonApplyFailed, message: strings.Repeat("\x01", 100000)}
	}, wasSuspended)
	status := endStatus(seen, ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, strings.Repeat("\x01", 100000)})
	text, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("%d bytes", len(text))
	g.Expect(len(text)).To(BeNumerically("<", 64<<10))
}

// A condition of another controller says which generation that one has seen, not what this one has.
func TestConditionsOfOthersStay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	other := metav1.Condition{Type: "example.com/Other", Status: metav1.ConditionTrue, Reason: "Other", ObservedGeneration: 3}
	status := desiredStatus(seeing(isEnded, func(f *observation) { f.goop.Status.Conditions = append(f.goop.Status.Conditions, other) }))
	g.Expect(status.Conditions).To(ContainElement(other))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionComplete).ObservedGeneration).To(Equal(int64(7)))
}
