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
		for range 3 {
			if reconcile(ctx, configMaps, object.Name) == nil {
				break
			}
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
	word := strings.ToUpper(original.Data["word"])
	loud, err := configMaps.Get(ctx, name+"-loud", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		loud = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-loud"}, Data: map[string]string{"word": word}}
		_, err = configMaps.Create(ctx, loud, metav1.CreateOptions{})
		return err
	}
	if err != nil || loud.Data["word"] == word {
		return err
	}
	loud.Data = map[string]string{"word": word}
	_, err = configMaps.Update(ctx, loud, metav1.UpdateOptions{})
	return err
}
