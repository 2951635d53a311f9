package page

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
)

// digest is what the annotation of a Page's Pods should be.
func digest(page *pages.Page) string {
	sum := sha256.Sum256([]byte(page.Spec.Markdown))
	return hex.EncodeToString(sum[:])
}

// unlike says what of a Page's objects and of its record is not as its spec asks for, or returns an empty string.
func (c *cluster) unlike(page *pages.Page) string {
	config, deployment, service := &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}
	for i, object := range []client.Object{config, deployment, service} {
		switch {
		case !c.get(page.Name, object):
			return "there is no " + kinds[i].name
		case !metav1.IsControlledBy(object, page):
			return "it does not control the " + kinds[i].name
		}
	}
	for _, text := range []string{unlikeConfig(page, config), unlikeDeployment(page, deployment), unlikeService(deployment, service)} {
		if text != "" {
			return text
		}
	}
	record, found := c.dns.find(page.Spec.Hostname)
	switch {
	case !found:
		return "there is no DNS record of " + page.Spec.Hostname
	case record.Service != page.Name+"."+page.Namespace:
		return fmt.Sprintf("its DNS record leads to the Service %q", record.Service)
	}
	return ""
}

func unlikeConfig(page *pages.Page, config *corev1.ConfigMap) string {
	if len(config.Data) != 1 || len(config.BinaryData) > 0 || config.Data[pages.Key] != page.Spec.Markdown {
		return fmt.Sprintf("its ConfigMap does not have the Markdown, and nothing else, under the key %s", pages.Key)
	}
	return ""
}

// unlikeDeployment looks at what the Pods need to serve the Markdown.
func unlikeDeployment(page *pages.Page, deployment *appsv1.Deployment) string {
	template := deployment.Spec.Template
	if len(template.Spec.Containers) != 1 || template.Spec.Containers[0].Image != pages.Image {
		return "its Deployment does not have one container, with the given image"
	}
	container := template.Spec.Containers[0]
	mounted := ""
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == "/page" && mount.SubPath == "" {
			mounted = mount.Name
		}
	}
	serves := false
	for _, volume := range template.Spec.Volumes {
		serves = serves || volume.Name == mounted && volume.ConfigMap != nil && volume.ConfigMap.Name == page.Name
	}
	switch {
	case !serves:
		return "the ConfigMap is not mounted at /page"
	case template.Annotations[pages.Annotation] != digest(page):
		return fmt.Sprintf("the annotation %s of the Pods is %q, and should be %q",
			pages.Annotation, template.Annotations[pages.Annotation], digest(page))
	}
	return ""
}

// unlikeService looks at whether it leads to the Pods.
func unlikeService(deployment *appsv1.Deployment, service *corev1.Service) string {
	pods := labels.Set(deployment.Spec.Template.Labels)
	if len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(pods) {
		return "its Service does not select the Pods"
	}
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 80 {
		return "its Service does not have one port, 80"
	}
	target := service.Spec.Ports[0].TargetPort
	if target.IntValue() == pages.Port {
		return ""
	}
	for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
		if port.Name != "" && port.Name == target.StrVal && port.ContainerPort == pages.Port {
			return ""
		}
	}
	return fmt.Sprintf("its Service leads to the port %s of the Pods", target.String())
}

// admit asks the API server whether the Pods of a Page would be admitted where the Pod Security Standard restricted is enforced.
func (c *cluster) admit(name string) {
	namespace := &corev1.Namespace{}
	c.must("reading a namespace", c.client.Get(c.b.Context(), client.ObjectKey{Name: c.namespace}, namespace))
	c.patch(namespace, "the Pod Security Standard restricted is enforced", func() {
		namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	})
	template := c.deployment(name).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = name, c.namespace
	if err := c.client.Create(c.b.Context(), pod, client.DryRunAll); err != nil {
		c.b.Fatalf("the Pods are not admitted: %v", err)
	}
}

// apart checks that the Service and the Deployment of each Page select its own Pods only.
func (c *cluster) apart(one, other string) {
	for _, pair := range [][2]string{{one, other}, {other, one}} {
		pods := labels.Set(c.deployment(pair[1]).Spec.Template.Labels)
		selector, err := metav1.LabelSelectorAsSelector(c.deployment(pair[0]).Spec.Selector)
		c.must("reading a selector", err)
		if selector.Matches(pods) {
			c.b.Fatalf("the Deployment %s selects the Pods of %s, too", pair[0], pair[1])
		}
		service := c.object(kinds[2], pair[0]).(*corev1.Service)
		if labels.SelectorFromSet(service.Spec.Selector).Matches(pods) {
			c.b.Fatalf("the Service %s selects the Pods of %s, too", pair[0], pair[1])
		}
	}
}

// rollOut is what the Deployment controller comes to in the end, which does not run here.
func (c *cluster) rollOut() {
	var all appsv1.DeploymentList
	c.must("listing Deployments", c.client.List(c.b.Context(), &all, client.InNamespace(c.namespace)))
	for i := range all.Items {
		deployment := &all.Items[i]
		if containers := deployment.Spec.Template.Spec.Containers; deployment.DeletionTimestamp == nil && containers[0].Image == pages.Image {
			n := *deployment.Spec.Replicas
			c.reports(deployment, appsv1.DeploymentStatus{
				ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			})
		}
	}
}

// reports writes what the Deployment controller says of a Deployment, where that differs.
func (c *cluster) reports(deployment *appsv1.Deployment, status appsv1.DeploymentStatus) {
	now := deployment.Status
	if now.ObservedGeneration == status.ObservedGeneration && now.Replicas == status.Replicas &&
		now.UpdatedReplicas == status.UpdatedReplicas && now.AvailableReplicas == status.AvailableReplicas {
		return
	}
	c.b.Event("the Deployment %s: of %d Pods %d are updated, and %d available", deployment.Name,
		status.Replicas, status.UpdatedReplicas, status.AvailableReplicas)
	deployment.Status = status
	// Where the operator has changed it in between, the next look is soon enough.
	if err := c.client.Status().Update(c.b.Context(), deployment); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		c.b.Fatalf("writing the status of a Deployment: %v", err)
	}
}
