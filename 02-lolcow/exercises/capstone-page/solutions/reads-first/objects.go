package page

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
)

// desired is an object, and a function that sets what the operator decides of it.
type desired struct {
	kind   string
	object client.Object
	set    func()
}

// wanted are the objects of a Page.
func wanted(page *pages.Page) (config, deployment, service desired) {
	labels := map[string]string{"app.kubernetes.io/name": "page", "app.kubernetes.io/instance": page.Name}
	c, d, s := &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}
	config = desired{"ConfigMap", c, func() {
		c.Data, c.BinaryData = map[string]string{pages.Key: page.Spec.Markdown}, nil
	}}
	deployment = desired{"Deployment", d, func() { setDeployment(d, page, labels) }}
	service = desired{"Service", s, func() {
		s.Spec.Selector = labels
		nodePort := int32(0)
		if len(s.Spec.Ports) > 0 {
			nodePort = s.Spec.Ports[0].NodePort
		}
		s.Spec.Ports = []corev1.ServicePort{{
			Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(pages.Port), NodePort: nodePort,
		}}
	}}
	return config, deployment, service
}

// setDeployment leaves alone what the API server has filled in, and the number of Pods.
func setDeployment(d *appsv1.Deployment, page *pages.Page, labels map[string]string) {
	if d.Spec.Selector == nil { // it cannot be changed later
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	}
	template := &d.Spec.Template
	template.Labels = merged(template.Labels, labels)
	sum := sha256.Sum256([]byte(page.Spec.Markdown))
	template.Annotations = merged(template.Annotations, map[string]string{pages.Annotation: hex.EncodeToString(sum[:])})
	pod := &template.Spec
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container := &pod.Containers[0]
	container.Name, container.Image = "page", pages.Image
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/page", ReadOnly: true}}
	if len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil {
		pod.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	}
	pod.Volumes[0].Name, pod.Volumes[0].ConfigMap.Name = "page", page.Name
}

func merged(existing, ours map[string]string) map[string]string {
	all := maps.Clone(existing)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, ours)
	return all
}
