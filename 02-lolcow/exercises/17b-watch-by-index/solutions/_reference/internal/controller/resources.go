/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// labelsOf are the labels of a Lolcow's pods, and no other Lolcow's. A Deployment's selector cannot change: nothing that may
// change belongs here.
func labelsOf(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "lolcow", "app.kubernetes.io/instance": lolcow.Name}
}

// ownerReference makes the Lolcow the controller of a dependent.
func ownerReference(lolcow *v1alpha1.Lolcow) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Lolcow").
		WithName(lolcow.Name).
		WithUID(lolcow.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// desiredDeployment has the fields of a Deployment that the spec and the greeting decide, and no other.
func desiredDeployment(lolcow *v1alpha1.Lolcow, greeting string) *appsv1ac.DeploymentApplyConfiguration {
	replicas := int32(1)
	if lolcow.Spec.Replicas != nil {
		replicas = *lolcow.Spec.Replicas
	}
	container := corev1ac.Container().
		WithName("lolcow").
		WithImage("lolcow:latest").
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(greeting).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080))
	return appsv1ac.Deployment(lolcow.Name, lolcow.Namespace).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labelsOf(lolcow))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labelsOf(lolcow)).
				WithSpec(corev1ac.PodSpec().WithContainers(container))))
}

// desiredService has the fields of a Service that the spec decides. Without a port in the spec, the one that the API server
// has chosen stays.
func desiredService(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().
		WithName("http").
		WithProtocol(corev1.ProtocolTCP).
		WithPort(80).
		WithTargetPort(intstr.FromString("http"))
	if lolcow.Spec.Port != nil {
		port = port.WithNodePort(*lolcow.Spec.Port)
	}
	return corev1ac.Service(lolcow.Name, lolcow.Namespace).
		WithOwnerReferences(ownerReference(lolcow)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(labelsOf(lolcow)).
			WithPorts(port))
}
