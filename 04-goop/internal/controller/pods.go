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

// exitCodeUnknown stands for the exit code of a worker that has ended with 0 but left no valid record, because another
// writer has changed its pod. The worker counts as failed.
const exitCodeUnknown = 125

// podSummary summarizes all pods of the work, or of the cleanup.
type podSummary struct {
	// ended are the workers that have finished and are not recorded yet.
	ended map[plan.Place]worker.Record
	// vanishing: the pod of one of them is being deleted, and its result with it.
	vanishing bool
	// kept are the finished workers whose pods, and therefore logs, still exist.
	kept map[plan.Place]bool
	// takenUp are the unfinished workers whose pods a kubelet has accepted: their work may have begun.
	takenUp map[plan.Place]bool
	// atWork are the nodes with an unfinished worker; mayBegin are those of them where work may begin at any moment, if it
	// has not yet; begun are all nodes where work has begun, and leaving those of them whose pod is terminating.
	atWork, mayBegin, begun, leaving map[string]bool
	// ending are the nodes with an unfinished worker whose DaemonSet has been deleted, and orphaned are the places of workers,
	// finished or not, whose DaemonSet was deleted with --cascade=orphan: they do not end.
	ending   map[string]bool
	orphaned map[plan.Place]bool
	// crowded are the nodes where the scheduler has no room for a worker.
	crowded map[string]bool
	// running is the number of running workers, and unfinished the number of pods of unfinished workers, including those
	// that are terminating.
	running, unfinished int
	// notStarted is the most urgent reason why a worker does not start; nil if there is none.
	notStarted *startFailure
}

// startFailure is the reason of the kubelet or the scheduler why a worker does not start. The most urgent one is
// reported, and of equally urgent ones that of the first node by name, then the first by its text: the order of pods in
// the cache varies.
type startFailure struct {
	// urgency is 0 for the most urgent failures.
	urgency               int
	node, reason, message string
}

// podOwner is the DaemonSet that owns a pod. It may have been deleted already, and the pod be left without an owner.
type podOwner struct {
	round             int
	deleted, orphaned bool
}

// summarize summarizes the pods of these DaemonSets, except those of rounds that the plan does not have. DaemonSets are
// identified by uid, because pods of an earlier Goop of the same name may still exist. isRecorded reports whether the end
// of a worker is recorded already.
func summarize(pods []corev1.Pod, owners map[types.UID]podOwner, isRecorded func(plan.Place) bool) podSummary {
	s := podSummary{
		ended: map[plan.Place]worker.Record{}, kept: map[plan.Place]bool{}, takenUp: map[plan.Place]bool{},
		atWork: map[string]bool{}, mayBegin: map[string]bool{}, begun: map[string]bool{}, leaving: map[string]bool{}, ending: map[string]bool{}, crowded: map[string]bool{},
		orphaned: map[plan.Place]bool{},
	}
	for i := range pods {
		if owner, ours := owners[ownerKey(&pods[i])]; ours && owner.round < v1alpha1.MaxRounds {
			s.add(&pods[i], owner, isRecorded)
		}
	}
	return s
}

func (s *podSummary) add(pod *corev1.Pod, owner podOwner, isRecorded func(plan.Place) bool) {
	place := plan.Place{Node: pod.Spec.NodeName, Round: owner.round}
	if owner.orphaned {
		s.orphaned[place] = true
	}
	stays := isActive(pod) && !owner.deleted
	work := initStatus(pod, v1alpha1.WorkContainer)
	if place.Node != "" && hasBegun(work) {
		s.begun[place.Node] = true
		if !stays {
			s.leaving[place.Node] = true
		}
	}
	if work != nil && work.State.Running != nil {
		s.running++
	}
	switch {
	case place.Node == "":
		s.addUnscheduled(pod, owner)
	case isRecorded(place):
		if stays && !isSecond(pod, work) {
			s.kept[place] = true
		}
	case finished(work) != nil:
		s.ended[place] = recordOf(finished(work))
		if stays {
			s.kept[place] = true
		} else {
			s.vanishing = true
		}
	default:
		s.addUnfinished(pod, place, owner)
	}
}

// addUnscheduled adds a pod without a node. Its conditions may have the scheduler's reason.
func (s *podSummary) addUnscheduled(pod *corev1.Pod, owner podOwner) {
	s.unfinished++
	if owner.deleted && !owner.orphaned {
		s.ending[targetNode(pod)] = true
	}
	failure := unscheduled(pod)
	if failure != nil {
		s.crowded[failure.node] = true
	}
	s.note(failure)
}

// addUnfinished adds the pod of a worker that has a node and has not finished.
func (s *podSummary) addUnfinished(pod *corev1.Pod, place plan.Place, owner podOwner) {
	s.unfinished++
	s.atWork[place.Node] = true
	if isTakenUp(pod) {
		s.takenUp[place] = true
	}
	if owner.deleted && !owner.orphaned {
		s.ending[place.Node] = true
	}
	failure := startFailureOf(pod)
	rejected := pod.Status.Phase == corev1.PodFailed && !hasBegun(initStatus(pod, v1alpha1.WorkContainer))
	if !rejected && (failure == nil || failure.reason != v1alpha1.ReasonImageNotPulled) {
		s.mayBegin[place.Node] = true
	}
	s.note(failure)
}

// note keeps the more urgent failure.
func (s *podSummary) note(found *startFailure) {
	if found != nil && (s.notStarted == nil || cmp.Or(found.urgency-s.notStarted.urgency, strings.Compare(found.node, s.notStarted.node), strings.Compare(found.message, s.notStarted.message)) < 0) {
		s.notStarted = found
	}
}

// controllerOf returns the uid of a pod's controller, "" if it has none.
func controllerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// ownerKey identifies the owner of a pod: the uid of its controller, or its own if it has none.
func ownerKey(pod *corev1.Pod) types.UID { return cmp.Or(controllerOf(pod), pod.UID) }

// isOrphan reports whether a pod has no owner and stays: a DaemonSet whose selector it matches adopts it.
func isOrphan(pod *corev1.Pod) bool { return controllerOf(pod) == "" && pod.DeletionTimestamp == nil }

// isMadeFor reports whether a DaemonSet or pod was created for this Goop, and not for an earlier one of the same name.
func isMadeFor(goop *v1alpha1.Goop, object metav1.Object) bool {
	return object.GetLabels()[v1alpha1.LabelGoopUID] == string(goop.UID)
}

// isActive reports whether a pod is neither terminating nor in a final phase.
func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// isTakenUp reports whether a kubelet has accepted a pod: it has reported the state of a container, and has neither
// rejected nor evicted the pod.
func isTakenUp(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && (initStatus(pod, installContainer) != nil || initStatus(pod, v1alpha1.WorkContainer) != nil)
}

// isSecond reports whether the pod of a recorded worker is a replacement of the pod that did the work. In a replacement
// the work container has never ended. In the original pod it has, and after a restart of its node it only repeats its
// record.
func isSecond(pod *corev1.Pod, work *corev1.ContainerStatus) bool {
	if work == nil {
		install := initStatus(pod, installContainer)
		return install == nil || install.RestartCount == 0
	}
	return work.State.Terminated == nil && work.LastTerminationState.Terminated == nil && work.RestartCount == 0
}

// initStatus returns the status of an init container; nil if the kubelet has not reported it. Other writers may have
// injected init containers, so it looks for the name.
func initStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if pod.Status.InitContainerStatuses[i].Name == name {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// hasBegun reports whether a work container is running or has run.
func hasBegun(work *corev1.ContainerStatus) bool {
	return work != nil && (work.State.Running != nil || work.RestartCount > 0 ||
		everRan(work.State.Terminated) || everRan(work.LastTerminationState.Terminated))
}

// everRan reports whether a terminated container has run.
func everRan(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && ended.Reason != "StartError" && ended.Reason != "ContainerCannotRun"
}

// finished returns the end of a worker's work; nil if it has not finished. A worker ends with 0 if and only if it leaves
// a record. After any other exit code the kubelet restarts the container. After a restart of the node the end is in the
// last termination state.
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

// unscheduled returns the scheduler's reason why a pod has no node; nil if there is none.
func unscheduled(pod *corev1.Pod) *startFailure {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && pod.DeletionTimestamp == nil {
			node := targetNode(pod)
			return &startFailure{urgency: 1, node: node, reason: v1alpha1.ReasonUnschedulable, message: node + ": " + condition.Message}
		}
	}
	return nil
}

// targetNode returns the node for which the DaemonSet controller created a pod.
func targetNode(pod *corev1.Pod) string {
	for _, term := range requiredTerms(pod.Spec.Affinity) {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return "a node"
}

// requiredTerms returns the terms of which a node has to match one; none if it need not.
func requiredTerms(affinity *corev1.Affinity) []corev1.NodeSelectorTerm {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// startFailureOf returns the reason why a worker does not start; nil if there is none.
func startFailureOf(pod *corev1.Pod) *startFailure {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	// The kubelet has rejected or evicted the pod. The DaemonSet controller creates new pods, so the message does not
	// contain the name of this one.
	if pod.Status.Phase == corev1.PodFailed {
		why := strings.TrimSuffix(cmp.Or(pod.Status.Reason, "the pod has failed")+": "+strings.TrimSpace(pod.Status.Message), ": ")
		return &startFailure{urgency: 2, node: pod.Spec.NodeName, reason: v1alpha1.ReasonWorkersNotStarted, message: pod.Spec.NodeName + ": " + why}
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

// read fills in the reason why a container does not start, and reports whether there is one.
func (f *startFailure) read(name string, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if waiting := status.State.Waiting; waiting != nil && endReasons[waiting.Reason] {
		ended = status.LastTerminationState.Terminated
	}
	message, pull := waitMessage(status)
	switch {
	case pull:
		f.urgency, f.reason, f.message = 0, v1alpha1.ReasonImageNotPulled, message
	case message != "":
		f.message = message
	case ended == nil || ended.ExitCode == 0:
		return false
	default:
		f.message = endMessage(name, ended)
	}
	return true
}
