package foo

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ownerOf := func(references ...metav1.OwnerReference) *metav1.OwnerReference {
		return OwnerOf(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{OwnerReferences: references}})
	}
	const version = "samplecontroller.example.com/v1alpha1"
	owner := metav1.OwnerReference{APIVersion: version, Kind: "Foo", Name: "one", Controller: new(true)}
	g.Expect(ownerOf(owner)).To(HaveValue(Equal(owner)))
	g.Expect(ownerOf()).To(BeNil())
	g.Expect(ownerOf(metav1.OwnerReference{APIVersion: version, Kind: "Foo"})).To(BeNil(), "an owner, and no controller")
	g.Expect(ownerOf(metav1.OwnerReference{APIVersion: version, Kind: "Bar", Controller: new(true)})).To(BeNil())
	g.Expect(ownerOf(metav1.OwnerReference{APIVersion: "example.org/v1alpha1", Kind: "Foo", Controller: new(true)})).To(BeNil())
}

func TestTransform(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	identity := metav1.ObjectMeta{
		Name: "web", Namespace: "space", UID: "1", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Bar"}},
	}
	other := &appsv1.Deployment{ObjectMeta: identity, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}}
	other.Annotations = map[string]string{"large": "text"}
	other.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "someone"}}
	reduced, err := Transform(other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reduced).To(Equal(&appsv1.Deployment{ObjectMeta: identity}))
	again, err := Transform(reduced)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(reduced), "a transform may be called with its own result")

	// Not by a label: another writer may change it, and until it is corrected the status would report no replica.
	ours := other.DeepCopy()
	ours.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Foo", Controller: new(true)}}
	kept, err := Transform(ours)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeIdenticalTo(ours), "managedFields say what we own")

	configMap := &corev1.ConfigMap{}
	kept, err = Transform(configMap)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeIdenticalTo(configMap))
}

// The API server accepts such a list with a warning. It does not show which writer owns which entry.
func TestWhatCannotBeExtractedIsNotInSync(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	live := &appsv1.Deployment{}
	live.Spec.Template.Spec.Containers = []corev1.Container{{Name: containerName, Env: []corev1.EnvVar{{Name: "TWICE"}, {Name: "TWICE"}}}}
	_, err := appsv1ac.ExtractDeployment(live, FieldOwner)
	g.Expect(err).To(HaveOccurred())
	g.Expect(InSync(live, Deployment(aFoo(), image))).To(BeFalse())
}

// What other writers add does not count, nor which writer owns a field, nor the order of a list.
func TestHasDesiredValues(t *testing.T) {
	t.Parallel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(Deployment(aFoo(), image))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct {
		change           func(*appsv1.Deployment)
		hasDesiredValues bool
	}{
		"as applied":       {func(*appsv1.Deployment) {}, true},
		"without its kind": {func(d *appsv1.Deployment) { d.TypeMeta = metav1.TypeMeta{} }, true},
		"an added sidecar": {func(d *appsv1.Deployment) {
			containers := &d.Spec.Template.Spec.Containers
			*containers = append([]corev1.Container{{Name: "sidecar"}}, *containers...)
		}, true},
		"an added label":      {func(d *appsv1.Deployment) { d.Labels["team"] = "blue" }, true},
		"another image":       {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, false},
		"another name":        {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "other" }, false},
		"another pull policy": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways }, false},
		"other replicas":      {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) }, false},
		"a missing label":     {func(d *appsv1.Deployment) { delete(d.Labels, labelName) }, false},
		"no owner":            {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, false},
		"no capabilities":     {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities = nil }, false},
		"the owner's old uid": {func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			live := &appsv1.Deployment{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(runtime.DeepCopyJSON(fields), live)).To(Succeed())
			test.change(live)
			g.Expect(HasDesiredValues(live, Deployment(aFoo(), image))).To(Equal(test.hasDesiredValues))
		})
	}
	NewWithT(t).Expect(HasDesiredValues(nil, Deployment(aFoo(), image))).To(BeFalse())
}
