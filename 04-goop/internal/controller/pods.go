package controller

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/worker"
)

// exitCodeUnknown is that of a worker that has ended with 0 and has left no record that can be read: another writer has
// changed its pod. It counts as a failure.
const exitCodeUnknown = 125

// podSummary is what the pods of the work, or of the cleanup, say of themselves, all together.
type podSummary struct {
	// ended are the workers that have finished and are not recorded yet.
	ended map[plan.Place]worker.Record
	// vanishing: one of them is about to be deleted, and its result with it.
	vanishing bool
	// kept are the finished workers whose pod, and with it their log, is still there.
	kept map[plan.Place]bool
	// atWork are the nodes with a worker that is not finished; mayBegin are those of them where work may begin at any
	// moment, if it has not; begun are all where it has.
	atWork, mayBegin, begun map[string]bool
	// running is how many workers are running now, and unfinished how many pods there are of workers that are not
	// finished, those included that are about to end.
	running, unfinished int
	// notStarted is the most telling reason why a worker does not start; nil if there is none.
	notStarted *startFailure
}

// startFailure is why a worker does not start, as the kubelet or the scheduler says. Of several, the one with the lowest
// urgency is reported, then that of the first node by name.
type startFailure struct {
	urgency               int
	node, reason, message string
}

// summarize sums up what the pods of the rounds say. Rounds are known by the uid of their DaemonSet: pods of an earlier
// Goop of the same name may still be there. isRecorded tells whether the end of a worker is recorded already.
func summarize(pods []corev1.Pod, rounds map[types.UID]int, isRecorded func(plan.Place) bool) podSummary {
	s := podSummary{
		ended: map[plan.Place]worker.Record{}, kept: map[plan.Place]bool{},
		atWork: map[string]bool{}, mayBegin: map[string]bool{}, begun: map[string]bool{},
	}
	for i := range pods {
		if round, ours := rounds[controllerOf(&pods[i])]; ours {
			s.add(&pods[i], round, isRecorded)
		}
	}
	return s
}

func (s *podSummary) add(pod *corev1.Pod, round int, isRecorded func(plan.Place) bool) {
	place := plan.Place{Node: pod.Spec.NodeName, Round: round}
	work := initStatus(pod, v1alpha1.WorkContainer)
	if place.Node != "" && hasBegun(work) {
		s.begun[place.Node] = true
	}
	if work != nil && work.State.Running != nil {
		s.running++
	}
	switch {
	case place.Node == "":
		// It is not on a node yet: the scheduler may say why.
		s.unfinished++
		s.note(unscheduled(pod))
	case isRecorded(place):
		if lives(pod) && !isSecond(pod, work) {
			s.kept[place] = true
		}
	case finished(work) != nil:
		s.ended[place] = recordOf(finished(work))
		if lives(pod) {
			s.kept[place] = true
		} else {
			s.vanishing = true
		}
	default:
		s.unfinished++
		s.atWork[place.Node] = true
		failure := startFailureOf(pod)
		if failure == nil || failure.reason != v1alpha1.ReasonImageNotPulled {
			s.mayBegin[place.Node] = true
		}
		s.note(failure)
	}
}

// note keeps the most telling failure.
func (s *podSummary) note(found *startFailure) {
	if found != nil && (s.notStarted == nil || cmp.Or(found.urgency-s.notStarted.urgency, strings.Compare(found.node, s.notStarted.node)) < 0) {
		s.notStarted = found
	}
}

// controllerOf is the uid of a pod's DaemonSet, "" if it has none.
func controllerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// lives tells whether a pod is there to stay. One that has failed as a whole is replaced by the DaemonSet
// controller.
func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// isSecond tells whether the pod of a worker that is recorded is another than the one that did the work: its own
// work has never ended. After a restart of its node the first one's has, and it only repeats its record.
func isSecond(pod *corev1.Pod, work *corev1.ContainerStatus) bool {
	if work == nil {
		install := initStatus(pod, installContainer)
		return install == nil || install.RestartCount == 0
	}
	return work.State.Terminated == nil && work.LastTerminationState.Terminated == nil && work.RestartCount == 0
}

// initStatus is the status of an init container; nil if the kubelet has not said anything of it. Others may have
// been injected.
func initStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if pod.Status.InitContainerStatuses[i].Name == name {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// hasBegun tells whether a work container is running, or was.
func hasBegun(work *corev1.ContainerStatus) bool {
	return work != nil && (work.State.Running != nil || work.RestartCount > 0 ||
		everRan(work.State.Terminated) || everRan(work.LastTerminationState.Terminated))
}

// everRan tells whether a container that has ended ever ran.
func everRan(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && ended.Reason != "StartError" && ended.Reason != "ContainerCannotRun"
}

// finished is the end of a worker's work; nil if it is not over. The worker ends with 0 when, and only when, it
// leaves a record: anything else is a try that the kubelet follows with another. A restart of its node makes the
// end the last but one.
func finished(work *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if work == nil {
		return nil
	}
	for _, ended := range []*corev1.ContainerStateTerminated{work.State.Terminated, work.LastTerminationState.Terminated} {
		if ended != nil && ended.ExitCode == 0 {
			return ended
		}
	}
	return nil
}

func recordOf(ended *corev1.ContainerStateTerminated) worker.Record {
	record, err := worker.ParseRecord(ended.Message)
	if err != nil {
		return worker.Record{ExitCode: exitCodeUnknown, Tries: 1, Output: "goop-operator: " + err.Error()}
	}
	return record
}

// unscheduled is why a pod does not start that is on no node; nil if the scheduler has not said anything.
func unscheduled(pod *corev1.Pod) *startFailure {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && pod.DeletionTimestamp == nil {
			node := nodeWanted(pod)
			return &startFailure{urgency: 1, node: node, reason: v1alpha1.ReasonUnschedulable, message: node + ": " + condition.Message}
		}
	}
	return nil
}

// nodeWanted is the node that the DaemonSet controller has made a pod for.
func nodeWanted(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "a node"
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return "a node"
}

// startFailureOf is what keeps a worker from starting; nil if nothing does.
func startFailureOf(pod *corev1.Pod) *startFailure {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range []string{installContainer, v1alpha1.WorkContainer} {
		status := initStatus(pod, name)
		if status == nil {
			continue
		}
		found := &startFailure{urgency: 2, node: pod.Spec.NodeName, reason: v1alpha1.ReasonWorkersNotStarted}
		if !found.read(name, status) {
			continue
		}
		found.message = fmt.Sprintf("%s (pod %s): %s", pod.Spec.NodeName, pod.Name, found.message)
		return found
	}
	return nil
}

// read takes over what keeps a container from starting, and tells whether anything does.
func (f *startFailure) read(name string, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if waiting := status.State.Waiting; waiting != nil {
		switch {
		case pullReasons[waiting.Reason]:
			f.urgency, f.reason = 0, v1alpha1.ReasonImageNotPulled
			f.message = pullMessage(status.Image, waiting.Message)
			return true
		case waiting.Reason == "CrashLoopBackOff":
			// Its message names ever longer pauses: what came before says more, and stays.
			ended = status.LastTerminationState.Terminated
		case waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			f.message = strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
			return true
		}
	}
	if ended == nil || ended.ExitCode == 0 {
		return false
	}
	f.message = strings.TrimSuffix(fmt.Sprintf("container %s ended with exit code %d (%s): %s", name, ended.ExitCode, ended.Reason, strings.TrimSpace(ended.Message)), ": ")
	return true
}
