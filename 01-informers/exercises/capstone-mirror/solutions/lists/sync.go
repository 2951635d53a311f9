package mirror

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	copyLabel        = "mirror.example.com/copy"
	sourceAnnotation = "mirror.example.com/source"
)

// sync reads everything, and makes each copy what it should be. An error in one namespace does not hold up the others.
func (m *mirror) sync(ctx context.Context) error {
	source, err := m.client.CoreV1().Secrets(m.source.Namespace).Get(ctx, m.source.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		source = nil
	} else if err != nil {
		return err
	}
	namespaces, err := m.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: m.targets.String()})
	if err != nil {
		return err
	}
	secrets, err := m.client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: copyLabel + "=true", FieldSelector: fields.OneTermEqualSelector("metadata.name", m.source.Name).String(),
	})
	if err != nil {
		return err
	}
	copies := map[string]*corev1.Secret{}
	for i := range secrets.Items {
		// The source has the marks, too, if it was restored from a copy.
		if secret := &secrets.Items[i]; secret.Namespace != m.source.Namespace && secret.Annotations[sourceAnnotation] == m.source.String() {
			copies[secret.Namespace] = secret
		}
	}
	var errs []error
	selected := sets.New[string]()
	for _, namespace := range namespaces.Items {
		if source == nil || namespace.Name == m.source.Namespace {
			continue
		}
		selected.Insert(namespace.Name)
		if namespace.DeletionTimestamp == nil {
			errs = append(errs, m.ensure(ctx, m.copyOf(source, namespace.Name), copies[namespace.Name]))
		}
	}
	for namespace, current := range copies {
		if !selected.Has(namespace) {
			errs = append(errs, m.remove(ctx, current))
		}
	}
	return errors.Join(errs...)
}

// ensure makes a copy what it should be. current is nil if there is none.
func (m *mirror) ensure(ctx context.Context, wanted, current *corev1.Secret) error {
	secrets := m.client.CoreV1().Secrets(wanted.Namespace)
	if current != nil {
		switch {
		case wanted.Type == current.Type && immutable(wanted) == immutable(current) && apiequality.Semantic.DeepEqual(wanted.Data, current.Data):
			return nil
		case wanted.Type == current.Type && !immutable(current):
			// With the resourceVersion of what was read: it does not overwrite what has taken the name.
			changed := current.DeepCopy()
			changed.Data, changed.Immutable = wanted.Data, wanted.Immutable
			_, err := secrets.Update(ctx, changed, metav1.UpdateOptions{})
			return err
		}
		// Nothing else can change the type of a Secret, or one that is immutable.
		if err := m.remove(ctx, current); err != nil {
			return err
		}
	}
	_, err := secrets.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // a Secret that is no copy; a copy that another replica has created brings an event
	}
	return err
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

func (m *mirror) copyOf(source *corev1.Secret, namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: source.Name,
			Labels:      map[string]string{copyLabel: "true"},
			Annotations: map[string]string{sourceAnnotation: m.source.String()},
		},
		Type: source.Type, Data: source.Data, Immutable: source.Immutable,
	}
}

func immutable(secret *corev1.Secret) bool { return secret.Immutable != nil && *secret.Immutable }
