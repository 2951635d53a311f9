package controller

import (
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// pagePort is that of the container, and of the Service: without a targetPort, the two are the same.
const pagePort = 8080

func podLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{"lolcow": lolcow.Name}
}

func desiredDeployment(lolcow *v1alpha1.Lolcow) *appsv1ac.DeploymentApplyConfiguration {
	page := corev1ac.Container().
		WithName("page").
		WithImage("lolcow:latest").
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("lolcow", lolcow.Spec.Greeting).
		WithPorts(corev1ac.ContainerPort().WithContainerPort(pagePort))
	deployment := appsv1ac.Deployment("lolcow-"+lolcow.Name, lolcow.Namespace).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(podLabels(lolcow))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(podLabels(lolcow)).
				WithSpec(corev1ac.PodSpec().WithContainers(page))))
	deployment.Spec.Replicas = lolcow.Spec.Replicas
	return deployment
}

func desiredService(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().WithPort(pagePort)
	port.NodePort = lolcow.Spec.Port
	return corev1ac.Service("lolcow-"+lolcow.Name, lolcow.Namespace).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(podLabels(lolcow)).
			WithPorts(port))
}
