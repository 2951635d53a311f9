// Package owner is exercise 07c: an index of dependents by the uid of their owners.
package owner

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(owners, secrets cache.SharedIndexInformer) (
	dependents func(owner *corev1.ConfigMap) ([]string, error), orphans func() ([]string, error), err error)

const patience = 5 * time.Second

// Check compares dependents and orphans with what was created and deleted.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the dependents of an owner are found", func(b *check.B) {
		s := newSecrets(b)
		first, second := s.owner("a"), s.owner("b")
		s.secret("x", first)
		s.secret("y", first)
		s.secret("z", second)
		s.start(work.Entry)
		s.expectDependents(first, "x", "y")
		s.expectDependents(second, "z")
		s.expectIndex(2)
	})
	if !ok {
		return
	}
	t.Behaviour("a dependent is found by its second owner too", func(b *check.B) {
		s := newSecrets(b)
		first, second := s.owner("a"), s.owner("b")
		s.secret("x", first, second)
		s.start(work.Entry)
		s.expectDependents(first, "x")
		s.expectDependents(second, "x")
	})
	t.Behaviour("an object that was created anew under the name of an owner has no dependents", func(b *check.B) {
		s := newSecrets(b)
		s.secret("x", s.owner("a"))
		s.remove("a")
		again := s.owner("a")
		s.start(work.Entry)
		s.expectDependents(again)
	})
	orphans(t, work.Entry)
}

// orphans checks which Secrets are orphans.
func orphans(t *check.T, entry Entry) {
	t.Behaviour("a Secret whose owner is gone is an orphan", func(b *check.B) {
		s := newSecrets(b)
		s.secret("x", s.owner("a"))
		s.secret("y", s.owner("b"))
		s.remove("a")
		s.start(entry)
		s.expectOrphans("x")
	})
	t.Behaviour("a Secret is an orphan also if another object has the name of its owner", func(b *check.B) {
		s := newSecrets(b)
		s.secret("x", s.owner("a"))
		s.remove("a")
		s.owner("a")
		s.start(entry)
		s.expectOrphans("x")
	})
	t.Behaviour("a Secret with one owner left is not an orphan", func(b *check.B) {
		s := newSecrets(b)
		s.secret("x", s.owner("a"), s.owner("b"))
		s.remove("a")
		s.start(entry)
		s.expectOrphans()
	})
	t.Behaviour("a Secret that never had an owner is not an orphan", func(b *check.B) {
		s := newSecrets(b)
		s.owner("a")
		s.secret("plain")
		s.start(entry)
		s.expectOrphans()
	})
	t.Behaviour("orphans are found as they are now", func(b *check.B) {
		s := newSecrets(b)
		s.secret("x", s.owner("a"))
		s.secret("y", s.owner("b"))
		s.start(entry)
		s.expectOrphans()
		s.remove("b")
		s.b.Eventually(patience, func() string {
			if keys := s.owners.GetStore().ListKeys(); len(keys) != 1 {
				return "the informer for owners does not notice that one is gone"
			}
			return ""
		})
		s.expectOrphans("y")
	})
}

// secrets are Secrets and their owners in a namespace, with informers for both, and the reader's functions.
type secrets struct {
	b         *check.B
	namespace string
	client    typedcorev1.CoreV1Interface

	owners     cache.SharedIndexInformer
	all        cache.SharedIndexInformer
	dependents func(owner *corev1.ConfigMap) ([]string, error)
	orphans    func() ([]string, error)
}

func newSecrets(b *check.B) *secrets {
	return &secrets{b: b, namespace: kube.Namespace(b), client: kube.Client(b).CoreV1()}
}

func (s *secrets) owner(name string) *corev1.ConfigMap {
	s.b.Event("the check creates the owner %s", name)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created, err := s.client.ConfigMaps(s.namespace).Create(s.b.Context(), object, metav1.CreateOptions{})
	if err != nil {
		s.b.Fatalf("creating a ConfigMap: %v", err)
	}
	return created
}

func (s *secrets) remove(owner string) {
	s.b.Event("the check deletes the owner %s", owner)
	if err := s.client.ConfigMaps(s.namespace).Delete(s.b.Context(), owner, metav1.DeleteOptions{}); err != nil {
		s.b.Fatalf("deleting a ConfigMap: %v", err)
	}
}

func (s *secrets) secret(name string, owners ...*corev1.ConfigMap) {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	var names []string
	for _, owner := range owners {
		names = append(names, owner.Name)
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
		})
	}
	s.b.Event("the check creates the Secret %s, with the owners [%s]", name, strings.Join(names, ", "))
	if _, err := s.client.Secrets(s.namespace).Create(s.b.Context(), object, metav1.CreateOptions{}); err != nil {
		s.b.Fatalf("creating a Secret: %v", err)
	}
}

// start calls the reader's function, and fills both informers.
func (s *secrets) start(entry Entry) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube.NewWire(s.b).Client(), 0, informers.WithNamespace(s.namespace))
	s.owners = factory.Core().V1().ConfigMaps().Informer()
	s.all = factory.Core().V1().Secrets().Informer()
	var err error
	if s.dependents, s.orphans, err = entry(s.owners, s.all); err != nil {
		s.b.Fatalf("ByOwner returned an error: %v", err)
	}
	factory.StartWithContext(s.b.Context())
	s.b.Cleanup(factory.Shutdown)
	s.b.Eventually(patience, func() string {
		if !s.owners.HasSynced() || !s.all.HasSynced() {
			return "the informers have not synced"
		}
		return ""
	})
}

func (s *secrets) expectDependents(owner *corev1.ConfigMap, want ...string) {
	got, err := s.dependents(owner)
	s.compare("the dependents of "+owner.Name, got, err, want)
}

// expectIndex fails if no index has so many values. That of the namespace, which each informer of the factory has, has one.
func (s *secrets) expectIndex(owners int) {
	for name := range s.all.GetIndexer().GetIndexers() {
		if len(s.all.GetIndexer().ListIndexFuncValues(name)) >= owners {
			return
		}
	}
	s.b.Fatalf("%d owners have dependents, and no index of the informer for Secrets has a value for each of them", owners)
}

func (s *secrets) expectOrphans(want ...string) {
	got, err := s.orphans()
	s.compare("the orphans", got, err, want)
}

func (s *secrets) compare(what string, got []string, err error, want []string) {
	if err != nil {
		s.b.Fatalf("looking for %s: %v", what, err)
	}
	var names []string
	for _, key := range got {
		name, ok := strings.CutPrefix(key, s.namespace+"/")
		if !ok {
			s.b.Fatalf("%s: the function found %q, which is no key of the namespace: those are namespace/name", what, key)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	s.b.Event("%s: [%s]", what, strings.Join(names, ", "))
	if !slices.Equal(names, want) {
		s.b.Fatalf("%s are [%s], and the function found [%s]", what, strings.Join(want, ", "), strings.Join(names, ", "))
	}
}
