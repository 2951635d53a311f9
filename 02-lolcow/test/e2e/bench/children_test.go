package bench

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// children are a Deployment and a Service like those that the operator makes for a Lolcow.
func children(namespace, name string, owner types.UID, image string) (*appsv1ac.DeploymentApplyConfiguration, *corev1ac.ServiceApplyConfiguration) {
	labels := map[string]string{"app.kubernetes.io/name": "bare", "app.kubernetes.io/instance": name}
	probe := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("http")))
	}
	reference := metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Lolcow").
		WithName(name).
		WithUID(owner).
		WithController(true).
		WithBlockOwnerDeletion(true)
	deployment := appsv1ac.Deployment(name, namespace).
		WithLabels(labels).
		WithOwnerReferences(reference).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().
					WithAutomountServiceAccountToken(false).
					WithSecurityContext(corev1ac.PodSecurityContext().
						WithRunAsNonRoot(true).
						WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
					WithContainers(corev1ac.Container().
						WithName("lolcow").
						WithImage(image).
						WithArgs("--", "Moo").
						WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080)).
						WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1)).
						WithLivenessProbe(probe("/healthz")).
						WithSecurityContext(corev1ac.SecurityContext().
							WithAllowPrivilegeEscalation(false).
							WithReadOnlyRootFilesystem(true).
							WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))))))
	service := corev1ac.Service(name, namespace).
		WithLabels(labels).
		WithOwnerReferences(reference).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(labels).
			WithPorts(corev1ac.ServicePort().
				WithName("http").
				WithProtocol(corev1.ProtocolTCP).
				WithPort(80).
				WithTargetPort(intstr.FromString("http"))))
	return deployment, service
}
