package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// desiredDeployment is the whole Deployment of a Lolcow, but for the defaults of the API server.
func desiredDeployment(lolcow *v1alpha1.Lolcow) *appsv1.Deployment {
	labels := map[string]string{"my.domain/lolcow": lolcow.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name + "-page", Namespace: lolcow.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: lolcow.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:            "page",
					Image:           "lolcow:latest",
					ImagePullPolicy: corev1.PullIfNotPresent,
					Args:            []string{"$(GREETING)"},
					Env:             []corev1.EnvVar{{Name: "GREETING", Value: lolcow.Spec.Greeting}},
				}}},
			},
		},
	}
}
