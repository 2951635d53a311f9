package foo

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const image = "example.com/foo:test"

func aFoo() *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "space", UID: "uid-1", Generation: 2},
		Spec:       v1alpha1.FooSpec{DeploymentName: "web"},
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	deployment := Deployment(f, image)
	g.Expect(*deployment.Name).To(Equal("web"), "the name is the spec's, not the Foo's")
	g.Expect(*deployment.Namespace).To(Equal("space"))
	g.Expect(*deployment.Spec.Replicas).To(Equal(int32(1)))
	labels := map[string]string{LabelName: "foo", LabelInstance: "one", LabelManagedBy: "foo-operator"}
	g.Expect(deployment.Labels).To(Equal(labels))
	g.Expect(deployment.Spec.Template.Labels).To(Equal(labels))
	for label, value := range deployment.Spec.Selector.MatchLabels {
		g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue(label, value), "the selector finds the pods")
	}
	g.Expect(deployment.OwnerReferences).To(HaveLen(1))
	owner := deployment.OwnerReferences[0]
	g.Expect(*owner.APIVersion).To(Equal("samplecontroller.example.com/v1alpha1"))
	g.Expect(*owner.Kind).To(Equal("Foo"))
	g.Expect(*owner.UID).To(BeEquivalentTo("uid-1"))
	g.Expect(*owner.Controller).To(BeTrue())
	g.Expect(*owner.BlockOwnerDeletion).To(BeTrue())
	g.Expect(deployment.Spec.Template.Spec.Containers).To(HaveLen(1))
	g.Expect(*deployment.Spec.Template.Spec.Containers[0].Name).To(Equal("foo"))
	g.Expect(*deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
	g.Expect(deployment.Spec.Template.Spec.Containers[0].ImagePullPolicy).To(HaveValue(Equal(corev1.PullIfNotPresent)), "else the first image's tag decides for all later ones")

	f.Spec.Replicas = new(int32(0))
	g.Expect(*Deployment(f, image).Spec.Replicas).To(BeZero(), "0 is not unset")
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	reference := metav1.OwnerReference{
		APIVersion: "samplecontroller.example.com/v1alpha1", Kind: "Foo", Name: "one", UID: "uid-1", Controller: new(true),
	}
	for name, test := range map[string]struct {
		change func(*metav1.OwnerReference)
		owned  bool
	}{
		"a Foo":                   {func(*metav1.OwnerReference) {}, true},
		"owner but not in charge": {func(r *metav1.OwnerReference) { r.Controller = nil }, false},
		"another kind":            {func(r *metav1.OwnerReference) { r.Kind = "Bar" }, false},
		"another group's Foo":     {func(r *metav1.OwnerReference) { r.APIVersion = "example.org/v1alpha1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			owner := reference
			test.change(&owner)
			found := OwnerOf(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}})
			if !test.owned {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).NotTo(BeNil())
			g.Expect(found.Name).To(Equal("one"))
		})
	}
	NewWithT(t).Expect(OwnerOf(&appsv1.Deployment{})).To(BeNil())
}

func TestReduce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	identity := metav1.ObjectMeta{
		Name: "web", Namespace: "space", UID: "1", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Bar"}},
	}
	foreign := &appsv1.Deployment{ObjectMeta: identity, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}}
	foreign.Annotations = map[string]string{"large": "text"}
	foreign.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "someone"}}
	reduced, err := Reduce(foreign)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reduced).To(Equal(&appsv1.Deployment{ObjectMeta: identity}))
	again, err := Reduce(reduced)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(reduced), "a transform may see what it has transformed")

	ours := foreign.DeepCopy()
	ours.Labels[LabelManagedBy] = ManagedBy
	kept, err := Reduce(ours)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeIdenticalTo(ours), "managedFields tell what we own")

	other := &corev1.ConfigMap{}
	kept, err = Reduce(other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeIdenticalTo(other))
}

// Such a list the API server accepts, with a warning, and nobody can tell from it what is whose.
func TestWhatCannotBeExtractedIsNotInSync(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	live := &appsv1.Deployment{}
	live.Spec.Template.Spec.Containers = []corev1.Container{{Name: ContainerName, Env: []corev1.EnvVar{{Name: "TWICE"}, {Name: "TWICE"}}}}
	_, err := appsv1ac.ExtractDeployment(live, FieldOwner)
	g.Expect(err).To(HaveOccurred())
	g.Expect(InSync(live, Deployment(aFoo(), image))).To(BeFalse())
}
