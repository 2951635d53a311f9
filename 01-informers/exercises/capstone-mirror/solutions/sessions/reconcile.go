package mirror

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	copyLabel        = "mirror.example.com/copy"
	sourceAnnotation = "mirror.example.com/source"
)

// errBehind is what comes of a cache that does not have yet what the API server has. Trying again helps.
var errBehind = errors.New("the cache is behind")

// reconcile makes the copy in a namespace what it should be.
func (m *mirror) reconcile(ctx context.Context, namespace string) error {
	if m.terminating(namespace) {
		return nil
	}
	wanted, current := m.wanted(namespace), m.current(namespace)
	switch {
	case wanted == nil && current == nil:
		return nil
	case wanted == nil:
		return m.remove(ctx, current)
	case current == nil:
		return m.create(ctx, wanted)
	case same(wanted, current):
		return nil
	case mustBeReplaced(wanted, current):
		// The event about its deletion leads to the new one.
		return m.remove(ctx, current)
	}
	// The resourceVersion is the current one's: what has taken its place is not overwritten.
	changed := current.DeepCopy()
	changed.Data, changed.Immutable = wanted.Data, wanted.Immutable
	_, err := m.client.CoreV1().Secrets(namespace).Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

func (m *mirror) create(ctx context.Context, wanted *corev1.Secret) error {
	secrets := m.client.CoreV1().Secrets(wanted.Namespace)
	_, err := secrets.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := secrets.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if m.isCopy(live) {
		return errBehind
	}
	return nil
}

func (m *mirror) remove(ctx context.Context, current *corev1.Secret) error {
	err := m.client.CoreV1().Secrets(current.Namespace).Delete(ctx, current.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isCopy leaves out the source, which has the marks, too, if it was restored from a copy.
func (m *mirror) isCopy(secret *corev1.Secret) bool {
	return secret.Namespace != m.source.Namespace && secret.Labels[copyLabel] == "true" && secret.Annotations[sourceAnnotation] == m.source.String()
}

func (m *mirror) copyOf(source *corev1.Secret, namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: source.Name,
			Labels:      map[string]string{copyLabel: "true"},
			Annotations: map[string]string{sourceAnnotation: m.source.String()},
		},
		Type: source.Type, Data: maps.Clone(source.Data), Immutable: source.Immutable,
	}
}

func same(a, b *corev1.Secret) bool {
	return a.Type == b.Type && apiequality.Semantic.DeepEqual(a.Data, b.Data) && immutable(a) == immutable(b)
}

// mustBeReplaced says whether the API server would reject the change: types and immutable Secrets stay as they are.
func mustBeReplaced(wanted, current *corev1.Secret) bool {
	return wanted.Type != current.Type || immutable(current)
}

func immutable(secret *corev1.Secret) bool { return secret.Immutable != nil && *secret.Immutable }
