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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// labelsOf are the labels of a Lolcow's pods, and no other Lolcow's. A Deployment's selector cannot change: nothing that may
// change belongs here.
func labelsOf(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "lolcow", "app.kubernetes.io/instance": lolcow.Name}
}

// desiredDeployment sets in a Deployment what the spec decides. Everything else stays as it is: the API server has set
// defaults there, and other controllers their fields.
func desiredDeployment(lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment) {
	deployment.Spec.Replicas = lolcow.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(lolcow)}
	template := &deployment.Spec.Template
	template.Labels = labelsOf(lolcow)
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []corev1.Container{{}}
	}
	container := &template.Spec.Containers[0]
	container.Name = "lolcow"
	container.Image = "lolcow:latest"
	container.ImagePullPolicy = corev1.PullIfNotPresent
	container.Args = []string{lolcow.Spec.Greeting}
}
