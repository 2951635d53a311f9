package controller

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// facts are what one pass saw of the world. They are all that the status is made from.
type facts struct {
	// deployment is the Lolcow's Deployment; nil if there is none, or only a foreign one.
	deployment *appsv1.Deployment
	// service is the Lolcow's Service; nil if there is none, or only a foreign one.
	service *corev1.Service
	// pods are the Lolcow's pods.
	pods []corev1.Pod
	// refused is why a child could not be applied; nil if all were.
	refused *refusedError
}

// desiredStatus is the status that the facts amount to. The only thing it takes from the old status
// is what must not change yet: the greeting during a rollout, and when a condition last changed.
func desiredStatus(lolcow *v1alpha1.Lolcow, seen facts, now metav1.Time) v1alpha1.LolcowStatus {
	status := *lolcow.Status.DeepCopy()
	status.ObservedGeneration = lolcow.Generation

	switch {
	case seen.deployment == nil:
		status.Greeting = ""
	case rolledOut(seen.deployment):
		status.Greeting = servedGreeting(seen.deployment)
	}
	status.Port = 0
	if seen.service != nil && len(seen.service.Spec.Ports) > 0 {
		status.Port = seen.service.Spec.Ports[0].NodePort
	}

	ready := readyCondition(seen)
	ready.ObservedGeneration = lolcow.Generation
	ready.LastTransitionTime = now
	apimeta.SetStatusCondition(&status.Conditions, ready)
	return status
}

// readyCondition decides the condition Ready: the first case that holds is the one a user can act on.
func readyCondition(seen facts) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	pullMessage, notPulled := imagePullFailure(seen.pods)
	switch {
	// 1. The API server refused a child: nothing below can be as the spec wants it.
	case seen.refused != nil:
		ready.Reason, ready.Message = seen.refused.reason, seen.refused.message
	// 2. All pods are as wanted, and there are none.
	case rolledOut(seen.deployment) && wantedReplicas(seen.deployment) == 0:
		ready.Reason, ready.Message = v1alpha1.ReasonScaledToZero, "no replica is wanted, and none runs"
	// 3. All pods are as wanted. A pod that cannot pull does not count as available.
	case rolledOut(seen.deployment) && seen.service != nil:
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = v1alpha1.ReasonServing, "every replica serves the greeting"
	// 4. Pods are missing, and the kubelet says why.
	case notPulled:
		ready.Reason, ready.Message = v1alpha1.ReasonImageNotPulled, pullMessage
	// 5. Pods are missing, and will come. No numbers in the message: each would be a write.
	default:
		ready.Reason, ready.Message = v1alpha1.ReasonRollingOut, "waiting for every replica to be replaced and available"
	}
	return ready
}

// rolledOut tells whether every pod of the Deployment is of its present template and available.
// The status counts only if the Deployment's controller wrote it for the present generation.
func rolledOut(deployment *appsv1.Deployment) bool {
	if deployment == nil {
		return false
	}
	wanted, status := wantedReplicas(deployment), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted && status.Replicas == wanted
}

func wantedReplicas(deployment *appsv1.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
}

// servedGreeting is the greeting that the pods of a rolled-out Deployment serve.
func servedGreeting(deployment *appsv1.Deployment) string {
	if wantedReplicas(deployment) == 0 {
		return ""
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return greetingFromArgs(container.Args)
		}
	}
	return ""
}

// pullReasons are the reasons by which the kubelet says that it has no image for a container
// (k8s.io/kubernetes/pkg/kubelet/images/types.go).
var pullReasons = map[string]bool{
	"ErrImagePull":      true,
	"ImagePullBackOff":  true,
	"InvalidImageName":  true,
	"ErrImageNeverPull": true,
}

// imagePullFailure returns what the kubelet says about the first pod, by name, that has no image.
func imagePullFailure(pods []corev1.Pod) (message string, found bool) {
	var first string
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			waiting := container.State.Waiting
			if waiting == nil || !pullReasons[waiting.Reason] || (found && pod.Name >= first) {
				continue
			}
			first, found = pod.Name, true
			message = normalisePullMessage(container.Image, waiting.Message)
		}
	}
	return message, found
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

// readyOf returns the condition Ready of a Lolcow, or an empty one.
func readyOf(lolcow *v1alpha1.Lolcow) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady), metav1.Condition{})
}
