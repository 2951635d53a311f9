package everynode

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// WaitDone waits until a DaemonSet has done its work on all nodes.
func WaitDone(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	return wait.PollUntilContextCancel(ctx, time.Second/2, true, func(ctx context.Context) (bool, error) {
		set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if err != nil {
			return false, nil //nolint:nilerr // the next request may succeed
		}
		status := set.Status
		return status.ObservedGeneration >= set.Generation && status.NumberReady >= status.DesiredNumberScheduled, nil
	})
}
