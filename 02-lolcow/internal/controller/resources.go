package controller

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "lolcow-operator"

	containerName = "lolcow"
	containerPort = 8080
	// portName is that of the container's port and of the Service's.
	portName = "http"

	// servicePort is the port of the Service inside the cluster. It is part of the key of an entry in the
	// list of ports. Because it never changes, a new node port is a change to the same entry.
	servicePort = 80
)

// selectorLabels are the labels by which the Service and the Deployment select the pods of one Lolcow. A
// Deployment's selector is immutable, so these labels must not change.
func selectorLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{labelName: "lolcow", labelInstance: lolcow.Name}
}

func dependentLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	labels := selectorLabels(lolcow)
	labels[labelManagedBy] = managedBy
	return labels
}

// ownerReference makes the Lolcow the controller of a dependent: the garbage collector deletes the
// dependent with it, and the dependent's events trigger a reconciliation of the Lolcow.
func ownerReference(lolcow *v1alpha1.Lolcow) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind("Lolcow").
		WithName(lolcow.Name).
		WithUID(lolcow.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// isOurs reports whether any Lolcow is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "Lolcow" && owner.APIVersion == v1alpha1.SchemeGroupVersion.String()
}

// desiredDeployment is the Deployment that the spec describes. It has only the fields that the operator
// owns: all others are left to defaults and to other writers.
func desiredDeployment(lolcow *v1alpha1.Lolcow, defaultImage string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(lolcow.Name, lolcow.Namespace).
		WithLabels(dependentLabels(lolcow)).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(ptr.Deref(lolcow.Spec.Replicas, 1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(lolcow))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(dependentLabels(lolcow)).
				WithSpec(desiredPod(lolcow, defaultImage))))
}

// desiredPod is a pod that the `restricted` Pod Security level admits.
func desiredPod(lolcow *v1alpha1.Lolcow, defaultImage string) *corev1ac.PodSpecApplyConfiguration {
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(cmp.Or(lolcow.Spec.Image, defaultImage)).
		// If it were unset, the API server would choose it by the tag of the first image, and keep it when the image changes.
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(containerPort)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(intstr.FromString(portName))).
			WithPeriodSeconds(1)).
		WithLivenessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/healthz").WithPort(intstr.FromString(portName)))).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithArgs(greetingArgs(lolcow.Spec.Greeting)...)
	return corev1ac.PodSpec().
		WithNodeSelector(map[string]string{corev1.LabelOSStable: string(corev1.Linux)}). // the image is for Linux
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container)
}

// desiredService is the Service that the spec describes. If the spec has no port, nodePort is left out:
// the API server allocates one, and keeps it.
func desiredService(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().
		WithName(portName).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(servicePort).
		WithTargetPort(intstr.FromString(portName))
	if lolcow.Spec.Port != nil {
		port = port.WithNodePort(*lolcow.Spec.Port)
	}
	return corev1ac.Service(lolcow.Name, lolcow.Namespace).
		WithLabels(dependentLabels(lolcow)).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(selectorLabels(lolcow)).
			WithPorts(port))
}
