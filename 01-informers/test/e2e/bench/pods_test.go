package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/shared/cluster"
)

const (
	// appLabel is what the pods are looked up by.
	appLabel = "app.kubernetes.io/instance"
	// podsPerApp is how many pods a look-up finds.
	podsPerApp = 100
	// creators is how many requests are under way at once while the pods are made.
	creators = 16
)

// makePods fills a new namespace with pods that no node ever gets. Two writers make each, so that its
// managedFields are those of a running pod: one creates it, another writes its status.
func makePods(ctx context.Context, config *rest.Config, n int) (namespace string, err error) {
	creator, err := clientFor(config, "kube-controller-manager")
	if err != nil {
		return "", err
	}
	kubelet, err := clientFor(config, "kubelet")
	if err != nil {
		return "", err
	}
	made, err := creator.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{cluster.ManualPodsLabel: "true"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	namespace = made.Name
	owners := make([]types.UID, (n+podsPerApp-1)/podsPerApp)
	if err := inParallel(ctx, len(owners), func(i int) (err error) {
		owners[i], err = makeOwner(ctx, creator, namespace, app(i))
		return err
	}); err != nil {
		return namespace, err
	}
	return namespace, inParallel(ctx, n, func(i int) error {
		pod, err := creator.CoreV1().Pods(namespace).Create(ctx, newPod(i, owners[i/podsPerApp]), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a pod: %w", err)
		}
		return writeStatus(ctx, kubelet, pod)
	})
}

func clientFor(config *rest.Config, writer string) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = writer
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// makeOwner creates the owner of the pods of an app: the garbage collector deletes pods whose owner does not exist. A ReplicaSet
// would create pods of its own.
func makeOwner(ctx context.Context, client kubernetes.Interface, namespace, name string) (types.UID, error) {
	owner, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating an owner for pods: %w", err)
	}
	return owner.UID, nil
}

func app(i int) string { return fmt.Sprintf("app-%03d", i) }

// newPod is a small pod such as that of a Deployment: one container with a probe, limits and a variable.
func newPod(i int, owner types.UID) *corev1.Pod {
	name := app(i / podsPerApp)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("%s-7c5ddbdf54-%05d", name, i),
			Labels:          map[string]string{"app.kubernetes.io/name": "server", appLabel: name, "pod-template-hash": "7c5ddbdf54"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			SchedulerName:                "none",
			AutomountServiceAccountToken: new(false),
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
			Containers: []corev1.Container{{
				Name:  "server",
				Image: "example.com/none:1.4.2",
				Args:  []string{"--listen=:8080", "--log-level=info"},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env:   []corev1.EnvVar{{Name: "DATABASE_HOST", Value: name + "-db.default.svc"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("http")},
				}},
			}},
		},
	}
}

// writeStatus writes the status of a running pod, as a kubelet does.
func writeStatus(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	now := metav1.NewTime(pod.CreationTimestamp.Add(2 * time.Second))
	var conditions []corev1.PodCondition
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		conditions = append(conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	status := corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: conditions,
		HostIP:     "172.18.0.3",
		PodIP:      "10.244.1.17",
		PodIPs:     []corev1.PodIP{{IP: "10.244.1.17"}},
		StartTime:  &now,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "server", Ready: true, Started: new(true),
			Image:       "example.com/none:1.4.2",
			ImageID:     "example.com/none@sha256:4bf5e5bb2f7eec4e5d1a6ee8b3b8f2a3f9c4d2e1a0b9c8d7e6f5a4b3c2d1e0f9",
			ContainerID: "containerd://0b9c8d7e6f5a4b3c2d1e0f94bf5e5bb2f7eec4e5d1a6ee8b3b8f2a3f9c4d2e1a",
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("writing the status of a pod: %w", err)
	}
	if _, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("writing the status of a pod: %w", err)
	}
	return nil
}

// inParallel does n things, a few at once.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) { errs[i] = do(i) })
	return errors.Join(errs...)
}
