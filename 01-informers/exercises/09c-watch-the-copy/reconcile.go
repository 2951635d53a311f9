package watchthecopy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// prefix is that of the names of copies.
const prefix = "copy-"

// copyOf is the name of an original's copy, which does not contain the original's name.
func copyOf(original *corev1.ConfigMap) string { return prefix + string(original.UID) }

func (c *controller) work() {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.reconcile(key); err != nil && c.b.Context().Err() == nil {
			c.b.Errorf("reconciling %s: %v", key, err)
		}
		c.reconciled.Add(1)
		c.queue.Done(key)
	}
}

// reconcile makes the copy of an original what it should be.
func (c *controller) reconcile(name string) error {
	original, err := c.client.Get(c.b.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && original.Labels["loud"] != "yes" {
		return nil
	}
	if err != nil {
		return err
	}
	desired := corev1ac.ConfigMap(copyOf(original), original.Namespace).
		WithLabels(map[string]string{"loud-copy": "yes"}).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion("v1").WithKind("ConfigMap").WithName(original.Name).WithUID(original.UID).WithController(true)).
		WithData(map[string]string{"word": strings.ToUpper(original.Data["word"])})
	_, err = c.client.Apply(c.b.Context(), desired, metav1.ApplyOptions{FieldManager: "loud", Force: true})
	return err
}

// isCorrect reports whether an original's copy is what it should be.
func (c *controller) isCorrect(name string) bool {
	original := c.get(name)
	copied, err := c.client.Get(c.b.Context(), copyOf(original), metav1.GetOptions{})
	return err == nil && copied.Data["word"] == strings.ToUpper(original.Data["word"]) && metav1.IsControlledBy(copied, original) &&
		copied.Labels["loud-copy"] == "yes"
}
