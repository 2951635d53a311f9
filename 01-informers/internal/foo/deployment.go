// Package foo is what both implementations of the Foo controller share: spec → desired Deployment, observation → status,
// the classes of errors, when a rejected Deployment is tried again, and which transitions are worth an Event. It has no
// client and no cache, and its clock is injected.
package foo

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const (
	labelName     = "app.kubernetes.io/name"
	labelInstance = "app.kubernetes.io/instance"
	// LabelManagedBy is a label of the Deployment and of its pods, with the value ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy names the operator.
	ManagedBy = "foo-operator"

	containerName = "foo"
)

// CreateOnlyResourceVersion is a resourceVersion that no object ever has: etcd counts from 1, and the first write makes it 2.
// An apply with it can only create. If the object exists, the API server rejects the apply, because the resourceVersions
// differ; if it does not exist, the API server ignores the resourceVersion.
const CreateOnlyResourceVersion = "1"

// selectorLabels are the labels by which the Deployment selects the pods of one Foo. A Deployment's selector is immutable, so
// these labels must not change.
func selectorLabels(f *v1alpha1.Foo) map[string]string {
	return map[string]string{labelName: "foo", labelInstance: f.Name}
}

func dependentLabels(f *v1alpha1.Foo) map[string]string {
	labels := selectorLabels(f)
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// ownerReference makes the Foo the controller of its Deployment: the garbage collector deletes the Deployment with it, and
// the Deployment's events trigger a reconciliation of the Foo.
func ownerReference(f *v1alpha1.Foo) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind("Foo").
		WithName(f.Name).
		WithUID(f.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// Deployment is the Deployment that the spec asks for. It names only the fields that the controller means
// to own: all others are left to defaults and to other writers. Build a new one for each apply: the With methods, such
// as WithResourceVersion, change it in place.
func Deployment(f *v1alpha1.Foo, image string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(f.Spec.DeploymentName, f.Namespace).
		WithLabels(dependentLabels(f)).
		WithOwnerReferences(ownerReference(f)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(ptr.Deref(f.Spec.Replicas, 1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(f))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(dependentLabels(f)).
				WithSpec(desiredPod(image))))
}

// desiredPod is a pod that the `restricted` Pod Security level admits.
func desiredPod(image string) *corev1ac.PodSpecApplyConfiguration {
	return corev1ac.PodSpec().
		WithNodeSelector(map[string]string{corev1.LabelOSStable: string(corev1.Linux)}). // the image is for Linux
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(corev1ac.Container().
			WithName(containerName).
			WithImage(image).
			// If it were unset, the API server would choose it by the tag of the first image, and keep it when the image changes.
			WithImagePullPolicy(corev1.PullIfNotPresent).
			WithSecurityContext(corev1ac.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))))
}

// InSync reports whether every field that this controller owns of the live Deployment is as desired, so that an apply would
// change nothing. What other writers own does not count. The live object needs its managedFields. If ExtractDeployment fails,
// the Deployment is not in sync: for example, another writer may have added two entries with the same key to a list with
// listType=map, which the API server accepts with a warning.
func InSync(live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) bool {
	owned, err := appsv1ac.ExtractDeployment(live, FieldOwner)
	return err == nil && apiequality.Semantic.DeepEqual(owned, desired)
}

// HasDesiredValues reports whether every field of the desired Deployment has its value in the live one, even if another writer
// owns the field. After another writer has changed a field and changed it back, the Deployment has the desired values but is
// not in sync: that writer owns the field.
func HasDesiredValues(live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) bool {
	if live == nil {
		return false
	}
	actual, liveErr := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	fields, desiredErr := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	// An object from a cache may lack them.
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return liveErr == nil && desiredErr == nil && covers(actual, fields)
}

// covers reports whether an actual value contains the desired one. A list of objects contains the desired list if each desired
// object is covered by some object in it, in any order: other writers may have added objects.
func covers(actual, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		fields, ok := actual.(map[string]any)
		for name, value := range desired {
			ok = ok && covers(fields[name], value)
		}
		return ok
	case []any:
		elements, ok := actual.([]any)
		for i, element := range desired {
			if _, isObject := element.(map[string]any); isObject {
				ok = ok && slices.ContainsFunc(elements, func(one any) bool { return covers(one, element) })
			} else {
				ok = ok && len(elements) == len(desired) && elements[i] == element
			}
		}
		return ok
	}
	return actual == desired
}

// OwnerOf returns the reference by which a Foo, any Foo, is the controller of the object; nil if none is.
func OwnerOf(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != "Foo" || owner.APIVersion != v1alpha1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// Transform is a cache transform for Deployments. One that a Foo owns stays whole: its managedFields say what this controller
// owns of it, and its status how many replicas are available. Any other Deployment is reduced to the metadata that is needed
// to recognize a name conflict, and to see when it is resolved. Other objects are not changed.
func Transform(in any) (any, error) {
	deployment, ok := in.(*appsv1.Deployment)
	if !ok || OwnerOf(deployment) != nil {
		return in, nil
	}
	return &appsv1.Deployment{
		TypeMeta: deployment.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name, Namespace: deployment.Namespace, UID: deployment.UID, ResourceVersion: deployment.ResourceVersion,
			Labels: deployment.Labels, OwnerReferences: deployment.OwnerReferences,
		},
	}, nil
}
