package mirror

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// targets creates namespaces that are selected.
func (c *cluster) targets(names ...string) {
	for _, name := range names {
		c.namespace(name, map[string]string{targetLabel: c.source.Namespace})
	}
}

// namespace creates a namespace. The runner deletes it after the run.
func (c *cluster) namespace(name string, labels map[string]string) {
	c.b.Event("a user creates the namespace %s, with %d labels", name, len(labels))
	all := map[string]string{check.RunLabel: os.Getenv(check.RunVariable)}
	maps.Copy(all, labels)
	namespace, err := c.client.CoreV1().Namespaces().Create(c.b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "exercise-" + name + "-", Labels: all,
	}}, metav1.CreateOptions{})
	c.must("creating a namespace", err)
	c.namespaces[name] = namespace.Name
}

// label selects a namespace, or does not select it any more.
func (c *cluster) label(name string, selected bool) {
	c.b.Event("a user changes the label of the namespace %s: selected %t", name, selected)
	var value any
	if selected {
		value = c.source.Namespace
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{targetLabel: value}}})
	c.must("making a patch", err)
	_, err = c.client.CoreV1().Namespaces().Patch(c.b.Context(), c.namespaces[name], types.MergePatchType, patch, metav1.PatchOptions{})
	c.must("changing a label", err)
}

func (c *cluster) createSource(word string, change func(*corev1.Secret)) {
	c.b.Event("a user creates the source with the word %s", word)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName, Labels: map[string]string{"of": "the-source"}},
		Data:       map[string][]byte{"word": []byte(word)},
	}
	if change != nil {
		change(secret)
	}
	_, err := c.secrets(c.source.Namespace).Create(c.b.Context(), secret, metav1.CreateOptions{})
	c.must("creating the source", err)
}

func (c *cluster) setSource(word string) {
	c.b.Event("a user changes the word of the source to %s", word)
	c.update(c.source.Namespace, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"word": []byte(word)} })
}

func (c *cluster) deleteSource() { c.remove(c.source.Namespace) }

// change changes a copy.
func (c *cluster) change(name string, f func(*corev1.Secret)) {
	c.b.Event("a user changes the copy in %s", name)
	c.update(name, f)
}

func (c *cluster) update(name string, f func(*corev1.Secret)) {
	c.must("changing a Secret", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := c.secrets(name).Get(c.b.Context(), secretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(secret)
		_, err = c.secrets(name).Update(c.b.Context(), secret, metav1.UpdateOptions{})
		return err
	}))
}

// remove deletes the Secret of a namespace.
func (c *cluster) remove(name string) {
	c.b.Event("a user deletes the Secret in %s", name)
	delete(c.alone, name)
	c.must("deleting a Secret", c.secrets(name).Delete(c.b.Context(), secretName, metav1.DeleteOptions{}))
}

// terminate deletes a namespace. Nothing empties it here, so that it stays, as one does whose deletion takes long.
func (c *cluster) terminate(name string) {
	c.b.Event("a user deletes the namespace %s", name)
	c.must("deleting a namespace", c.client.CoreV1().Namespaces().Delete(c.b.Context(), c.namespaces[name], metav1.DeleteOptions{}))
	delete(c.namespaces, name)
}

// another creates a Secret of the name that is no copy, and returns its resourceVersion.
func (c *cluster) another(name string, labels, annotations map[string]string) string {
	c.b.Event("a user creates a Secret of that name in %s", name)
	secret, err := c.secrets(name).Create(c.b.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName, Labels: labels, Annotations: annotations},
		Data:       map[string][]byte{"word": []byte("of another")},
	}, metav1.CreateOptions{})
	c.must("creating a Secret", err)
	return secret.ResourceVersion
}

// marksOfCopies are the label and the annotation of a copy.
func (c *cluster) marksOfCopies() (labels, annotations map[string]string) {
	return map[string]string{copyLabel: "true"}, map[string]string{sourceAnnotation: c.source.String()}
}

// markedOther creates a Secret of another name that is marked as a copy. The result says what has happened to it.
func (c *cluster) markedOther(name string) func() string {
	c.b.Event("a user creates a Secret of another name in %s, with the label and the annotation of a copy", name)
	labels, annotations := c.marksOfCopies()
	created, err := c.secrets(name).Create(c.b.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "backup", Labels: labels, Annotations: annotations},
		Data:       map[string][]byte{"word": []byte("of another")},
	}, metav1.CreateOptions{})
	c.must("creating a Secret", err)
	return func() string {
		live, err := c.secrets(name).Get(c.b.Context(), created.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "deleted"
		}
		c.must("reading a Secret", err)
		if live.ResourceVersion != created.ResourceVersion {
			return "changed"
		}
		return ""
	}
}

// leaveAlone notes a Secret that is no copy: expect fails as soon as it is not as it was.
func (c *cluster) leaveAlone(name, version string) { c.alone[name] = version }

// touched says what has happened to the Secrets that have to be left alone.
func (c *cluster) touched() string {
	for name, version := range c.alone {
		what := "a Secret of the name that is no copy"
		if name == c.source.Namespace {
			what = "the source"
		}
		switch live := c.secret(name); {
		case live == nil:
			return what + " was deleted"
		case live.ResourceVersion != version:
			return what + " was changed"
		}
	}
	return ""
}

func (c *cluster) untouched() {
	if why := c.touched(); why != "" {
		c.b.Fatalf("%s", why)
	}
}

// twice changes the source two times. When the second change has arrived, whatever the first one leads to has been done, too.
func (c *cluster) twice(names ...string) {
	for _, word := range []string{"two", "three"} {
		c.setSource(word)
		c.expect(word, names...)
	}
}

// marks asserts what a copy has, and that the source is as it was.
func (c *cluster) marks(name string) {
	live, source := c.secret(name), c.secret(c.source.Namespace)
	switch {
	case live.Type != corev1.SecretTypeOpaque:
		c.b.Fatalf("the copy is of the type %s", live.Type)
	case live.Labels["of"] != "":
		c.b.Fatalf("the copy has the labels of the source, which others may select by")
	case source.Labels[copyLabel] != "" || source.Annotations[sourceAnnotation] != "":
		c.b.Fatalf("the source was marked as a copy")
	}
}

// expectKind waits until the copy has a type, and is immutable or not.
func (c *cluster) expectKind(name string, kind corev1.SecretType, immutable bool) {
	c.b.Eventually(patience, func() string {
		c.running()
		live := c.secret(name)
		if live == nil {
			return "the copy in " + name + " is gone"
		}
		if is := live.Immutable != nil && *live.Immutable; live.Type != kind || is != immutable {
			return fmt.Sprintf("the copy in %s should be of the type %s, and immutable: %t; it is of the type %s, and immutable: %t",
				name, kind, immutable, live.Type, is)
		}
		return ""
	})
}

// selective asserts that no list and no watch was for all Secrets, of the cluster or of a namespace.
func (c *cluster) selective() {
	for _, r := range c.wire.Requests("list", "watch") {
		if r.Resource == "secrets" && r.Query.Get("labelSelector") == "" && r.Query.Get("fieldSelector") == "" {
			c.b.Fatalf("a %s of Secrets had neither a label selector nor a field selector", r.Verb)
		}
	}
}

// writesIn is how many writes were sent to namespaces.
func (c *cluster) writesIn(names ...string) int {
	n := 0
	for _, r := range c.wire.Requests() {
		for _, name := range names {
			if kube.Writes(r) && r.Namespace == c.namespaces[name] {
				n++
			}
		}
	}
	return n
}

// secret returns what has the name in a namespace, or nil.
func (c *cluster) secret(name string) *corev1.Secret {
	secret, err := c.secrets(name).Get(c.b.Context(), secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must("reading a Secret", err)
	return secret
}

func (c *cluster) secrets(name string) typedcorev1.SecretInterface {
	return c.client.CoreV1().Secrets(c.namespaces[name])
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}
