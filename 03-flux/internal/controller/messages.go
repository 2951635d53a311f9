package controller

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxConditionMessage bounds the message of a condition, in bytes: setCondition shortens it. The API server accepts
	// 32,768, but a status is read and written as a whole. The end of a container's output, of which the kubelet keeps
	// 4,096, has room in it.
	maxConditionMessage = 8192

	// maxEventNote is the most that the API server accepts as the text of an Event, in bytes
	// (k8s.io/kubernetes/pkg/apis/core/validation/events.go). An Event with more is lost.
	maxEventNote = 1024
)

// shorten cuts a text to so many bytes, between two characters.
func shorten(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

var (
	// address is an IPv4 or IPv6 address with a port; localEnd is one at the local end of a connection.
	address  = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d+`)
	localEnd = regexp.MustCompile(address.String() + `->`)
	duration = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s|m|h)(\d+(\.\d+)?(ms|s|m))*\b`)
)

// normalizeMessage replaces addresses, ports and durations, which differ each time a request fails: each new text in a
// condition would be a write.
func normalizeMessage(message string) string {
	message = localEnd.ReplaceAllString(message, "")
	message = address.ReplaceAllString(message, "ADDRESS")
	return duration.ReplaceAllString(message, "DURATION")
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

var backOffPrefix = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?`)

// pullMessage returns the same text for ErrImagePull and ImagePullBackOff, between which the kubelet alternates while it
// retries, so that a pull that keeps failing causes one write of the status, not many. The address of the registry stays,
// because it may be the cause.
func pullMessage(image, message string) string {
	message = backOffPrefix.ReplaceAllString(message, "")
	message = strings.TrimSpace(localEnd.ReplaceAllString(message, ""))
	if message == "" {
		return "pulling image " + image + " failed"
	}
	return "pulling image " + image + " failed: " + message
}

// endReasons are the waiting reasons of a container that has ended, maybe before it ran. The kubelet alternates between them,
// and one has a growing time in its message: the last end of the container says why.
var endReasons = map[string]bool{
	"CrashLoopBackOff":   true,
	"PostStartHookError": true,
	"RunContainerError":  true,
}

// waitMessage is what the kubelet says of a container that it cannot start; "" if the container does not wait, is about to be
// created, or says why in its last end. pull: it has no image. The kubelet has many reasons for failures, and a later version
// may have more (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go), so the reasons without a failure are listed.
func waitMessage(status *corev1.ContainerStatus) (message string, pull bool) {
	waiting := status.State.Waiting
	switch {
	case waiting == nil, endReasons[waiting.Reason] && status.LastTerminationState.Terminated != nil:
		return "", false
	case pullReasons[waiting.Reason]:
		return pullMessage(status.Image, waiting.Message), true
	case waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing":
		return "", false
	}
	return strings.TrimSuffix(waiting.Reason+": "+strings.TrimSpace(waiting.Message), ": "), false
}

// endMessage is what the kubelet says of the end of a container.
func endMessage(container string, ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("container %s ended with exit code %d (%s): %s", container, ended.ExitCode, ended.Reason, strings.TrimSpace(ended.Message))
	return strings.TrimSuffix(text, ": ")
}
