package controller

import (
	"cmp"
	"strings"

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

	// servicePort is the port of the Service inside the cluster. It is part of the key by which the
	// API server tells one port of a Service from another: as it never changes, a new node port is a
	// change to the same entry.
	servicePort = 80
)

// selectorLabels are what a Service finds the pods of one Lolcow by. A Deployment's selector is
// immutable, so nothing that may change belongs here.
func selectorLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{labelName: "lolcow", labelInstance: lolcow.Name}
}

func childLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	labels := selectorLabels(lolcow)
	labels[labelManagedBy] = managedBy
	return labels
}

// ownerReference makes the Lolcow the controller of a child: the garbage collector removes the child
// with it, and the child's events wake the Lolcow's reconciler.
func ownerReference(lolcow *v1alpha1.Lolcow) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Lolcow").
		WithName(lolcow.Name).
		WithUID(lolcow.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// desiredDeployment is the Deployment that the spec asks for. It names only the fields that the
// operator means to own: all others are left to defaults and to other writers.
func desiredDeployment(lolcow *v1alpha1.Lolcow, defaultImage string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(lolcow.Name, lolcow.Namespace).
		WithLabels(childLabels(lolcow)).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(ptr.Deref(lolcow.Spec.Replicas, 1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(lolcow))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(childLabels(lolcow)).
				WithSpec(desiredPod(lolcow, defaultImage))))
}

// desiredPod is a pod that the `restricted` Pod Security level admits.
func desiredPod(lolcow *v1alpha1.Lolcow, defaultImage string) *corev1ac.PodSpecApplyConfiguration {
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(cmp.Or(lolcow.Spec.Image, defaultImage)).
		// Left out, the API server would choose by the tag of the first image, and stay with that when the image changes.
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(containerPort)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(intstr.FromString("http"))).
			WithPeriodSeconds(1)).
		WithLivenessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/healthz").WithPort(intstr.FromString("http")))).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	if args := greetingArgs(lolcow.Spec.Greeting); len(args) > 0 {
		container = container.WithArgs(args...)
	}
	return corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container)
}

// desiredService is the Service that the spec asks for. Without a port in the spec the field is left
// out: the API server picks one, and keeps it.
func desiredService(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().
		WithName("http").
		WithProtocol(corev1.ProtocolTCP).
		WithPort(servicePort).
		WithTargetPort(intstr.FromString("http"))
	if lolcow.Spec.Port != nil {
		port = port.WithNodePort(*lolcow.Spec.Port)
	}
	return corev1ac.Service(lolcow.Name, lolcow.Namespace).
		WithLabels(childLabels(lolcow)).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(selectorLabels(lolcow)).
			WithPorts(port))
}

// greetingArgs turns a greeting into the arguments of the server's container. The kubelet expands
// $(NAME) in arguments and halves $$, so each $ is doubled; "--" keeps a greeting that begins with a
// dash from being read as an option. No shell sees any of it.
func greetingArgs(greeting string) []string {
	if greeting == "" {
		return nil
	}
	return []string{"--", strings.ReplaceAll(greeting, "$", "$$")}
}

// greetingFromArgs is the inverse of greetingArgs.
func greetingFromArgs(args []string) string {
	if len(args) != 2 {
		return ""
	}
	return strings.ReplaceAll(args[1], "$$", "$")
}

// isOurs tells whether a Lolcow, any Lolcow, is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "Lolcow" && owner.APIVersion == v1alpha1.GroupVersion.String()
}
