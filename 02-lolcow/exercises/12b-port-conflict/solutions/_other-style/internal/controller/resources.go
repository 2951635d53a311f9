package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/my-lolcow/api/v1alpha1"
)

func newDeployment(lolcow *v1alpha1.Lolcow) *appsv1.Deployment {
	labels := map[string]string{"lolcow": lolcow.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: lolcow.Spec.Replicas,
			Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "lolcow", Operator: metav1.LabelSelectorOpIn, Values: []string{lolcow.Name}}},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:            "page",
					Image:           "lolcow:latest",
					ImagePullPolicy: corev1.PullIfNotPresent,
					Command:         []string{"lolcow", "$(GREETING)"},
					Env:             []corev1.EnvVar{{Name: "GREETING", Value: lolcow.Spec.Greeting}},
				}}},
			},
		},
	}
}

func newService(lolcow *v1alpha1.Lolcow) *corev1.Service {
	port := corev1.ServicePort{Port: 8080, TargetPort: intstr.FromInt32(8080)}
	if lolcow.Spec.Port != nil {
		port.NodePort = *lolcow.Spec.Port
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"lolcow": lolcow.Name}, Ports: []corev1.ServicePort{port},
		},
	}
}
