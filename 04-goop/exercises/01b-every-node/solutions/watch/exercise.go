package everynode

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// WaitDone waits until a DaemonSet has done its work on all nodes.
func WaitDone(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	one := cache.NewListWatchFromClient(client.AppsV1().RESTClient(), "daemonsets", namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	_, err := watchtools.UntilWithSync(ctx, one, &appsv1.DaemonSet{}, nil, func(event watch.Event) (bool, error) {
		set, ok := event.Object.(*appsv1.DaemonSet)
		switch {
		case !ok:
			return false, nil
		case event.Type == watch.Deleted:
			return false, fmt.Errorf("the DaemonSet %s was deleted", name)
		}
		status := set.Status
		return status.ObservedGeneration >= set.Generation && status.NumberReady >= status.DesiredNumberScheduled, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
