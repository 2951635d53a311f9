// Package foo is what a Foo means, without a client, a cache or a clock of its own: the Deployment that a
// spec asks for, the status that facts amount to, which errors are refusals, how often to try again, and
// which transitions are worth an Event. Both implementations of the controller are built on it, so that
// what differs between them is machinery.
package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const (
	// LabelName is the label of a Foo's Deployment and of its pods that says what they are.
	LabelName = "app.kubernetes.io/name"

	// LabelInstance says which Foo they belong to, by its name.
	LabelInstance = "app.kubernetes.io/instance"

	// LabelManagedBy says who made them: the caches keep such Deployments whole.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "foo-operator"

	// ContainerName is the one container of a Foo's pods.
	ContainerName = "foo"
)

// SelectorLabels are what a Deployment finds the pods of one Foo by. A Deployment's selector is immutable,
// so nothing that may change belongs here.
func SelectorLabels(f *v1alpha1.Foo) map[string]string {
	return map[string]string{LabelName: "foo", LabelInstance: f.Name}
}

// Labels are those of the Deployment and of its pods.
func Labels(f *v1alpha1.Foo) map[string]string {
	labels := SelectorLabels(f)
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// OwnerReference makes the Foo the controller of its Deployment: the garbage collector removes the
// Deployment with it, and the Deployment's events wake it.
func OwnerReference(f *v1alpha1.Foo) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Foo").
		WithName(f.Name).
		WithUID(f.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// Deployment is the Deployment that the spec asks for. It names only the fields that the controller means
// to own: all others are left to defaults and to other writers. Build a new one for each apply.
func Deployment(f *v1alpha1.Foo, image string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(f.Spec.DeploymentName, f.Namespace).
		WithLabels(Labels(f)).
		WithOwnerReferences(OwnerReference(f)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(ptr.Deref(f.Spec.Replicas, 1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(f))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(Labels(f)).
				WithSpec(pod(image))))
}

// pod is a pod that the `restricted` Pod Security level admits.
func pod(image string) *corev1ac.PodSpecApplyConfiguration {
	return corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(corev1ac.Container().
			WithName(ContainerName).
			WithImage(image).
			// Left out, the API server would choose by the tag of the first image, and stay with that when the image changes.
			WithImagePullPolicy(corev1.PullIfNotPresent).
			WithSecurityContext(corev1ac.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))))
}

// InSync tells whether every field that this controller owns of the live Deployment is as desired, so that
// an apply would change nothing. What other writers own does not count. The live object needs its
// managedFields. One that cannot be extracted is not in sync: another writer may have put an entry twice into a
// list with keys, which the API server accepts with a warning.
func InSync(live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) bool {
	owned, err := appsv1ac.ExtractDeployment(live, FieldOwner)
	return err == nil && apiequality.Semantic.DeepEqual(owned, desired)
}

// OwnerOf returns the reference by which a Foo, any Foo, controls the object; nil if none does.
func OwnerOf(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != "Foo" || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return nil
	}
	return owner
}

// Reduce is a cache transform for Deployments, for both kinds of cache. One of ours, by its label, stays
// whole: its managedFields tell what this controller owns of it. Of a foreign one stays what a conflict of
// names can hang on. Anything that is not a Deployment passes as it is.
func Reduce(in any) (any, error) {
	deployment, ok := in.(*appsv1.Deployment)
	if !ok || deployment.Labels[LabelManagedBy] == ManagedBy {
		return in, nil
	}
	return &appsv1.Deployment{
		TypeMeta: deployment.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:            deployment.Name,
			Namespace:       deployment.Namespace,
			UID:             deployment.UID,
			ResourceVersion: deployment.ResourceVersion,
			Labels:          deployment.Labels,
			OwnerReferences: deployment.OwnerReferences,
		},
	}, nil
}
