package level

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
		for reconcile(ctx, configMaps, event.Type, object) != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// reconcile does what the type of the event says.
func reconcile(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, event watch.EventType, original *corev1.ConfigMap) error {
	loud := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: original.Name + "-loud"},
		Data:       map[string]string{"word": strings.ToUpper(original.Data["word"])},
	}
	var err error
	switch {
	case event == watch.Deleted || original.Labels["loud"] != "yes":
		err = configMaps.Delete(ctx, loud.Name, metav1.DeleteOptions{})
	case event == watch.Added:
		_, err = configMaps.Create(ctx, loud, metav1.CreateOptions{})
	case event == watch.Modified:
		_, err = configMaps.Update(ctx, loud, metav1.UpdateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
