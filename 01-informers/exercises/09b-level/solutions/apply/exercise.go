package level

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Loud keeps a loud copy of each ConfigMap of the namespace that has the label loud=yes. It returns when events is closed.
func Loud(ctx context.Context, client kubernetes.Interface, namespace string, events <-chan watch.Event) error {
	configMaps := client.CoreV1().ConfigMaps(namespace)
	for event := range events {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		for reconcile(ctx, configMaps, object.Name) != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// reconcile makes the copy of the ConfigMap with this name what it should be now.
func reconcile(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, name string) error {
	original, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && original.Labels["loud"] != "yes") {
		err := configMaps.Delete(ctx, name+"-loud", metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	loud := corev1ac.ConfigMap(name+"-loud", original.Namespace).
		WithData(map[string]string{"word": strings.ToUpper(original.Data["word"])})
	_, err = configMaps.Apply(ctx, loud, metav1.ApplyOptions{FieldManager: "loud"})
	return err
}
