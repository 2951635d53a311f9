package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/workbook/01-informers/internal/lesson"
)

// createPods creates the pods web-0, web-1 and so on, with the fields that pods in production have: a sidecar, probes,
// resources, environment, volumes, labels, and the status that a kubelet writes.
func createPods(ctx context.Context, env *lesson.Env, number int) {
	client := env.Client.CoreV1().Pods(env.Namespace)
	for i := range number {
		pod := lesson.Must(client.Create(ctx, bigPod(fmt.Sprintf("web-%d", i)), metav1.CreateOptions{}))
		pod.Status = runningStatus(pod)
		lesson.Must(client.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"}))
	}
}

func bigPod(name string) *corev1.Pod {
	pod := lesson.Pod(name)
	pod.Labels = map[string]string{
		"app":                          "web",
		"app.kubernetes.io/name":       "web",
		"app.kubernetes.io/instance":   "web-production",
		"app.kubernetes.io/managed-by": "helm",
		"pod-template-hash":            "7c5ddbdf54",
	}
	pod.Annotations = map[string]string{
		"prometheus.io/scrape":         "true",
		"prometheus.io/port":           "9090",
		"checksum/config":              "4f6d1a6d5d3b9a2f7f6c1b0e8d7a6c5b4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c",
		"kubectl.kubernetes.io/reason": "restarted after a change of the configuration",
	}
	pod.Spec.Containers = []corev1.Container{container("web", "http", 8080), container("proxy", "metrics", 15090)}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "web-config"},
		}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	return pod
}

func container(name, portName string, port int32) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString(portName)}},
		PeriodSeconds: 10,
	}
	one := corev1.Container{
		Name:           name,
		Image:          "example.com/none/" + name,
		Args:           []string{"--listen=:" + fmt.Sprint(port), "--log-format=json", "--config=/etc/web/config.yaml"},
		Ports:          []corev1.ContainerPort{{Name: portName, ContainerPort: port}},
		LivenessProbe:  probe,
		ReadinessProbe: probe.DeepCopy(),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web"}, {Name: "scratch", MountPath: "/tmp"}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for _, key := range []string{"DATABASE_URL", "CACHE_URL", "QUEUE_URL", "LOG_LEVEL", "REGION", "TIER"} {
		one.Env = append(one.Env, corev1.EnvVar{Name: key, Value: "some-value-of-" + key})
	}
	return one
}

// runningStatus returns the status that a kubelet writes for a running pod.
func runningStatus(pod *corev1.Pod) corev1.PodStatus {
	started := pod.CreationTimestamp
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &started,
		HostIP: "10.0.0.11", HostIPs: []corev1.HostIP{{IP: "10.0.0.11"}},
		PodIP: "10.244.1.17", PodIPs: []corev1.PodIP{{IP: "10.244.1.17"}},
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started,
		})
	}
	for _, one := range pod.Spec.Containers {
		const digest = "9b7f1a8f0f7c4b6d2e5a3c1d8e9f0a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f"
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: one.Name, Image: one.Image, Ready: true, Started: new(true),
			ImageID: one.Image + "@sha256:" + digest, ContainerID: "containerd://" + digest,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return status
}
