package controller

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/worker"
)

// exitCodeUnknown is told of a worker that has ended well and has left no record that can be read: somebody has
// changed its pod. It counts as a failure.
const exitCodeUnknown = 125

// podsOf lists the pods of a Goop's name from the cache, whatever they are for. They are not copied: nobody may
// change them.
func (r *GoopReconciler) podsOf(ctx context.Context, goop *v1alpha1.Goop) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Pods of Goop %s: %w", goop.Name, err)
	}
	return pods.Items, nil
}

// tale is what the pods of a Goop tell, all together.
type tale struct {
	// ended are the workers that have finished and are not recorded yet.
	ended map[plan.Place]worker.Record
	// fading: one of them will soon tell nothing any more.
	fading bool
	// kept are the finished workers whose pod, and with it their log, is still there.
	kept map[plan.Place]bool
	// atWork are the nodes with a worker that is not finished; begun are those of them where work may begin at any
	// moment, if it has not; seen are all where it has.
	atWork, begun, seen map[string]bool
	// running is how many workers are running now, and left how many pods there are of workers that are not
	// finished, those included that are about to end.
	running, left int
	// trouble is the most telling reason why a worker does not start; nil if there is none.
	trouble *trouble
}

// trouble is what keeps a worker from starting.
type trouble struct {
	// urgency orders troubles: that with the least is told.
	urgency               int
	node, reason, message string
}

// tell gathers what the pods of the rounds tell. Rounds are known by the uid of their DaemonSet: pods of an earlier
// Goop of the same name may still be there. recorded tells what is known of a worker already.
func tell(pods []corev1.Pod, rounds map[types.UID]int, recorded func(plan.Place) bool) tale {
	t := tale{
		ended: map[plan.Place]worker.Record{}, kept: map[plan.Place]bool{},
		atWork: map[string]bool{}, begun: map[string]bool{}, seen: map[string]bool{},
	}
	for i := range pods {
		if round, ours := rounds[controllerOf(&pods[i])]; ours {
			t.add(&pods[i], round, recorded)
		}
	}
	return t
}

func (t *tale) add(pod *corev1.Pod, round int, recorded func(plan.Place) bool) {
	place := plan.Place{Node: pod.Spec.NodeName, Round: round}
	work := initStatus(pod, v1alpha1.WorkContainer)
	if place.Node != "" && hasBegun(work) {
		t.seen[place.Node] = true
	}
	if work != nil && work.State.Running != nil {
		t.running++
	}
	switch {
	case place.Node == "":
		// It is not on a node yet: the scheduler may say why.
		t.left++
		t.note(unscheduled(pod))
	case recorded(place):
		if lives(pod) && !isSecond(pod, work) {
			t.kept[place] = true
		}
	case finished(work) != nil:
		t.ended[place] = recordOf(finished(work))
		if lives(pod) {
			t.kept[place] = true
		} else {
			t.fading = true
		}
	default:
		t.left++
		t.atWork[place.Node] = true
		found := troubleOf(pod)
		if found == nil || found.reason != v1alpha1.ReasonImageNotPulled {
			t.begun[place.Node] = true
		}
		t.note(found)
	}
}

// note keeps the most telling trouble: of those that tell as much that of the first node.
func (t *tale) note(found *trouble) {
	if found != nil && (t.trouble == nil || cmp.Or(found.urgency-t.trouble.urgency, strings.Compare(found.node, t.trouble.node)) < 0) {
		t.trouble = found
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

// unscheduled is the trouble of a pod that is on no node; nil if the scheduler has not said anything.
func unscheduled(pod *corev1.Pod) *trouble {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && pod.DeletionTimestamp == nil {
			node := nodeWanted(pod)
			return &trouble{urgency: 1, node: node, reason: v1alpha1.ReasonWorkersNotStarted, message: node + ": " + condition.Message}
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

// troubleOf is what keeps a worker from starting; nil if nothing does.
func troubleOf(pod *corev1.Pod) *trouble {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range []string{installContainer, v1alpha1.WorkContainer} {
		status := initStatus(pod, name)
		if status == nil {
			continue
		}
		found := &trouble{urgency: 2, node: pod.Spec.NodeName, reason: v1alpha1.ReasonWorkersNotStarted}
		if !found.read(name, status) {
			continue
		}
		found.message = fmt.Sprintf("%s (pod %s): %s", pod.Spec.NodeName, pod.Name, found.message)
		return found
	}
	return nil
}

// read takes over what keeps a container from starting, and tells whether anything does.
func (t *trouble) read(name string, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if waiting := status.State.Waiting; waiting != nil {
		switch {
		case pullReasons[waiting.Reason]:
			t.urgency, t.reason = 0, v1alpha1.ReasonImageNotPulled
			t.message = normalisePullMessage(status.Image, waiting.Message)
			return true
		case waiting.Reason == "CrashLoopBackOff":
			// Its message tells of ever longer pauses: what came before says more, and stays.
			ended = status.LastTerminationState.Terminated
		case waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			t.message = strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
			return true
		}
	}
	if ended == nil || ended.ExitCode == 0 {
		return false
	}
	t.message = strings.TrimSuffix(fmt.Sprintf("container %s ended with exit code %d (%s): %s", name, ended.ExitCode, ended.Reason, strings.TrimSpace(ended.Message)), ": ")
	return true
}

// pullReasons are the reasons by which the kubelet says that it has no image for a container
// (k8s.io/kubernetes/pkg/kubelet/images/types.go).
var pullReasons = map[string]bool{
	"ErrImagePull":              true,
	"ImagePullBackOff":          true,
	"InvalidImageName":          true,
	"ErrImageNeverPull":         true,
	"ImageInspectError":         true,
	"RegistryUnavailable":       true,
	"SignatureValidationFailed": true,
}

var (
	backOffPrefix = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?`)
	// A failed look-up or dial names the local end of the connection, with a new port each time.
	localEnd = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d+->`)
)

// normalisePullMessage makes one text of those that the kubelet alternates between while it retries
// (ErrImagePull and ImagePullBackOff), so that a pull that keeps failing writes one status, not many.
func normalisePullMessage(image, message string) string {
	message = backOffPrefix.ReplaceAllString(message, "")
	message = strings.TrimSpace(localEnd.ReplaceAllString(message, ""))
	if message == "" {
		return "pulling image " + image + " failed"
	}
	return "pulling image " + image + " failed: " + message
}
