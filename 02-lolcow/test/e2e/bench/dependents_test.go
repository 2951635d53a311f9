package bench

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// The dependents of a Lolcow, field by field as the operator makes them.

func selectorOf(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "lolcow", "app.kubernetes.io/instance": lolcow.Name}
}

func labelsOf(lolcow *v1alpha1.Lolcow) map[string]string {
	labels := selectorOf(lolcow)
	labels["app.kubernetes.io/managed-by"] = "lolcow-operator"
	return labels
}

func ownerOf(lolcow *v1alpha1.Lolcow) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind("Lolcow").
		WithName(lolcow.Name).
		WithUID(lolcow.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

func deploymentOf(lolcow *v1alpha1.Lolcow, image string) *appsv1ac.DeploymentApplyConfiguration {
	probe := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("http")))
	}
	return appsv1ac.Deployment(lolcow.Name, lolcow.Namespace).
		WithLabels(labelsOf(lolcow)).
		WithOwnerReferences(ownerOf(lolcow)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorOf(lolcow))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labelsOf(lolcow)).
				WithSpec(corev1ac.PodSpec().
					WithAutomountServiceAccountToken(false).
					WithEnableServiceLinks(false).
					WithNodeSelector(map[string]string{"kubernetes.io/os": "linux"}).
					WithSecurityContext(corev1ac.PodSecurityContext().
						WithRunAsNonRoot(true).
						WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
					WithContainers(corev1ac.Container().
						WithName("lolcow").
						WithImage(image).
						WithImagePullPolicy(corev1.PullIfNotPresent).
						WithArgs("--", lolcow.Spec.Greeting).
						WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080)).
						WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1)).
						WithLivenessProbe(probe("/healthz")).
						WithSecurityContext(corev1ac.SecurityContext().
							WithAllowPrivilegeEscalation(false).
							WithReadOnlyRootFilesystem(true).
							WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))))))
}

func serviceOf(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(lolcow.Name, lolcow.Namespace).
		WithLabels(labelsOf(lolcow)).
		WithOwnerReferences(ownerOf(lolcow)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(selectorOf(lolcow)).
			WithPorts(corev1ac.ServicePort().
				WithName("http").
				WithProtocol(corev1.ProtocolTCP).
				WithPort(80).
				WithTargetPort(intstr.FromString("http"))))
}
