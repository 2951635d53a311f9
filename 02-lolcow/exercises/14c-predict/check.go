// Package predict is exercise 14c: what a change does to the generation and to the resourceVersion.
package predict

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader fills in.
type Entry map[string]struct{ Generation, ResourceVersion string }

// What a prediction says.
const (
	stay   = "stays"
	change = "changes"
)

// experiment is a change, under its name in the table.
type experiment struct {
	name string
	// what is the change in words, and why what comes of it.
	what, why string
	try       func(s *scene)
}

var experiments = []experiment{
	{
		"finalizer", "a finalizer is added to a Lolcow", "a finalizer is stored, in the metadata, and the metadata is no part of the desired state",
		func(s *scene) { s.patch(s.lolcow, `{"metadata":{"finalizers":["example.com/hold"]}}`) },
	},
	{
		"same-greeting", "the greeting is set to what it is", "what would be stored is what is stored, so nothing is written",
		func(s *scene) { s.patch(s.lolcow, `{"spec":{"greeting":"Moo"}}`) },
	},
	{
		"no-replicas", "the replicas are removed from the spec", "the API server sets the default 1 again before it compares, so nothing differs",
		func(s *scene) { s.patch(s.lolcow, `{"spec":{"replicas":null}}`) },
	},
	{
		"status", "the status subresource is patched", "the status is stored, and it is no part of the desired state",
		func(s *scene) { s.patchStatus(`{"status":{"port":31999}}`) },
	},
	{
		"status-in-object", "the status is patched through the Lolcow itself", "the API server ignores the status in it, so nothing differs",
		func(s *scene) { s.patch(s.lolcow, `{"status":{"port":31999}}`) },
	},
	{
		"second-manager", "another client applies the greeting that it has", "the spec is as it was, and metadata.managedFields has one more manager",
		func(s *scene) { s.apply() },
	},
	{
		"deletion", "a Lolcow with a finalizer is deleted", "the deletionTimestamp is stored, and the API server counts the beginning of a deletion as a change of the desired state",
		func(s *scene) { s.remove() },
	},
	{
		"annotation-of-deployment", "an annotation is added to a Deployment", "the annotation is stored, and a Deployment counts its annotations as desired state: its ReplicaSets get them",
		func(s *scene) { s.patch(s.deployment, `{"metadata":{"annotations":{"example.com/mood":"fine"}}}`) },
	},
}

// Check makes each change, and compares what came of it with the table.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the table has a prediction for each change", func(b *check.B) { complete(b, work.Entry) })
	if !ok {
		return
	}
	for _, one := range experiments {
		t.Behaviour("your prediction is right: "+one.what, func(b *check.B) {
			s := newScene(b)
			generation, resourceVersion := s.observe(one)
			predicted := work.Entry[one.name]
			compare(b, "generation", predicted.Generation, generation)
			compare(b, "resourceVersion", predicted.ResourceVersion, resourceVersion)
			if b.Failed() {
				b.Errorf("the reason: %s", one.why)
			}
		})
	}
}

// complete fails if a prediction is missing, or is none.
func complete(b *check.B, table Entry) {
	names := map[string]bool{}
	for _, one := range experiments {
		names[one.name] = true
		row, found := table[one.name]
		if !found {
			b.Fatalf("the table has no row %q", one.name)
		}
		for _, prediction := range []string{row.Generation, row.ResourceVersion} {
			if !slices.Contains([]string{stay, change}, prediction) {
				b.Fatalf("in the row %q a prediction is %q, and has to be %q or %q", one.name, prediction, stay, change)
			}
		}
	}
	for name := range table {
		if !names[name] {
			b.Fatalf("the table has a row %q, and there is no such change", name)
		}
	}
}

func compare(b *check.B, number, predicted, seen string) {
	if predicted != seen {
		b.Errorf("the %s %s, and you have predicted that it %s", number, seen, predicted)
	}
}

// scene is a Lolcow and a Deployment.
type scene struct {
	b          *check.B
	client     client.Client
	lolcow     *v1alpha1.Lolcow
	deployment *appsv1.Deployment
	// changed is the object that the experiment changes, and before how it was.
	changed, before client.Object
}

func newScene(b *check.B) *scene {
	c, err := client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	namespace, labels := kube.Namespace(b), map[string]string{"lolcow": "cow"}
	s := &scene{
		b: b, client: c,
		lolcow: &v1alpha1.Lolcow{
			ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
		},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: namespace},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "lolcow", Image: "lolcow"}}},
				},
			},
		},
	}
	s.must("creating a Lolcow", c.Create(b.Context(), s.lolcow))
	s.must("creating a Deployment", c.Create(b.Context(), s.deployment))
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// observe makes the change, and says of the two numbers whether they stay.
func (s *scene) observe(one experiment) (generation, resourceVersion string) {
	s.b.Event("%s", one.what)
	one.try(s)
	s.must("reading the object", s.client.Get(s.b.Context(), client.ObjectKeyFromObject(s.changed), s.changed))
	generation, resourceVersion = stay, stay
	if s.changed.GetGeneration() != s.before.GetGeneration() {
		generation = change
	}
	if s.changed.GetResourceVersion() != s.before.GetResourceVersion() {
		resourceVersion = change
	}
	s.b.Event("  the generation %s, the resourceVersion %s", generation, resourceVersion)
	return generation, resourceVersion
}

// begin remembers how the object is that is going to be changed.
func (s *scene) begin(object client.Object) {
	s.changed, s.before = object, object.DeepCopyObject().(client.Object)
}

func (s *scene) patch(object client.Object, patch string) {
	s.begin(object)
	s.must("patching the object", s.client.Patch(s.b.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (s *scene) patchStatus(patch string) {
	s.begin(s.lolcow)
	s.must("patching the status", s.client.Status().Patch(s.b.Context(), s.lolcow, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// apply applies the greeting as alice.
func (s *scene) apply() {
	s.begin(s.lolcow)
	configuration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Lolcow",
		"metadata": map[string]any{"name": s.lolcow.Name, "namespace": s.lolcow.Namespace},
		"spec":     map[string]any{"greeting": s.lolcow.Spec.Greeting},
	}}
	s.must("applying the greeting",
		s.client.Apply(s.b.Context(), client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner("alice")))
}

// remove deletes the Lolcow, which a finalizer keeps.
func (s *scene) remove() {
	s.patch(s.lolcow, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	s.begin(s.lolcow)
	s.must("deleting the Lolcow", s.client.Delete(s.b.Context(), s.lolcow))
}
