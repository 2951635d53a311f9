package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// metaOf is the metadata of a dependent. Its reference does not block the deletion of the Lolcow. Here and below all pointers are
// new: the client decodes the response into what they point to.
func metaOf(lolcow *v1alpha1.Lolcow) *metav1ac.ObjectMetaApplyConfiguration {
	return &metav1ac.ObjectMetaApplyConfiguration{
		Name: new(lolcow.Name), Namespace: new(lolcow.Namespace),
		OwnerReferences: []metav1ac.OwnerReferenceApplyConfiguration{{
			APIVersion: new(v1alpha1.GroupVersion.String()), Kind: new("Lolcow"),
			Name: new(lolcow.Name), UID: new(lolcow.UID), Controller: new(true),
		}},
	}
}

func podLabels(lolcow *v1alpha1.Lolcow) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "lolcow", "app.kubernetes.io/instance": lolcow.Name}
}

func desiredDeployment(lolcow *v1alpha1.Lolcow) *appsv1ac.DeploymentApplyConfiguration {
	page := corev1ac.ContainerApplyConfiguration{
		Name: new("lolcow"), Image: new("lolcow:latest"), ImagePullPolicy: new(corev1.PullIfNotPresent), Args: []string{lolcow.Spec.Greeting},
	}
	return &appsv1ac.DeploymentApplyConfiguration{
		TypeMetaApplyConfiguration:   metav1ac.TypeMetaApplyConfiguration{APIVersion: new("apps/v1"), Kind: new("Deployment")},
		ObjectMetaApplyConfiguration: metaOf(lolcow),
		Spec: &appsv1ac.DeploymentSpecApplyConfiguration{
			Replicas: new(*lolcow.Spec.Replicas),
			Selector: &metav1ac.LabelSelectorApplyConfiguration{MatchLabels: podLabels(lolcow)},
			Template: &corev1ac.PodTemplateSpecApplyConfiguration{
				ObjectMetaApplyConfiguration: &metav1ac.ObjectMetaApplyConfiguration{Labels: podLabels(lolcow)},
				Spec:                         &corev1ac.PodSpecApplyConfiguration{Containers: []corev1ac.ContainerApplyConfiguration{page}},
			},
		},
	}
}

func desiredService(lolcow *v1alpha1.Lolcow) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePortApplyConfiguration{
		Protocol: new(corev1.ProtocolTCP), Port: new(int32(80)), TargetPort: new(intstr.FromInt32(8080)),
	}
	if lolcow.Spec.Port != nil {
		port.NodePort = new(*lolcow.Spec.Port)
	}
	return &corev1ac.ServiceApplyConfiguration{
		TypeMetaApplyConfiguration:   metav1ac.TypeMetaApplyConfiguration{APIVersion: new("v1"), Kind: new("Service")},
		ObjectMetaApplyConfiguration: metaOf(lolcow),
		Spec: &corev1ac.ServiceSpecApplyConfiguration{
			Type:     new(corev1.ServiceTypeNodePort),
			Selector: podLabels(lolcow),
			Ports:    []corev1ac.ServicePortApplyConfiguration{port},
		},
	}
}
