package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/cluster"
)

// Deployed is an operator that runs as a Deployment in a cluster.
type Deployed struct {
	cluster  cluster.Cluster
	cfg      *rest.Config
	clients  kubernetes.Interface
	manifest *manifest
	replicas int32
}

var _ Operator = &Deployed{}

// InCluster returns a handle for the operator of a stage that is deployed in c from config/OVERLAY.
func InCluster(c cluster.Cluster, stageDir, overlay string) (*Deployed, error) {
	m, err := readManifest(stageDir, overlay, nil)
	if err != nil {
		return nil, err
	}
	cfg, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	d := &Deployed{cluster: c, cfg: cfg, clients: clients, manifest: m, replicas: 1}
	if m.deployment.Spec.Replicas != nil {
		d.replicas = *m.deployment.Spec.Replicas
	}
	return d, nil
}

// User is that of the ServiceAccount that the manifest names.
func (d *Deployed) User() string { return d.manifest.user() }

// Namespace is the one that the operator is deployed to.
func (d *Deployed) Namespace() string { return d.manifest.deployment.Namespace }

// ServiceAccount is the one that the manifest names.
func (d *Deployed) ServiceAccount() string { return d.manifest.serviceAccount() }

// Logs joins the logs of the manager's containers, the one before a restart of the container first.
// Several pods have a line with their name before their logs.
func (d *Deployed) Logs(ctx context.Context) (string, error) {
	pods, err := d.pods(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, pod := range pods {
		if len(pods) > 1 {
			fmt.Fprintf(&text, "==> %s <==\n", pod.Name)
		}
		for _, previous := range []bool{true, false} {
			log, err := d.clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: d.manifest.container.Name, Previous: previous,
			}).DoRaw(ctx)
			if previous && err != nil {
				continue // most containers have no run before this one
			}
			if err != nil {
				return text.String(), fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
			}
			text.Write(log)
		}
	}
	return text.String(), nil
}

// Restart deletes the operator's pods as an eviction does, and waits for others.
func (d *Deployed) Restart(ctx context.Context) error {
	old, err := d.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range old {
		err := d.clients.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
	}
	return d.waitPods(ctx, readyTimeout, "the operator's new pods to be ready", func(pods []corev1.Pod) bool {
		isOld := func(pod corev1.Pod) bool {
			return slices.ContainsFunc(old, func(o corev1.Pod) bool { return o.UID == pod.UID })
		}
		return d.complete(pods) && !slices.ContainsFunc(pods, isOld)
	})
}

// Kill kills the manager's process in each pod. The pods stay: their kubelets start it again.
func (d *Deployed) Kill(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	return d.kill(ctx, pods)
}

// KillLeader kills the manager's process in the pod that the lease's holder is named after.
func (d *Deployed) KillLeader(ctx context.Context) (string, error) {
	var leader []corev1.Pod
	identity, err := waitLeader(ctx, d.clients, d.Namespace(), func(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
		pods, err := d.pods(ctx)
		leader = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !d.holds(pod, lease) })
		return len(leader) == 1, err
	})
	if err != nil {
		return "", err
	}
	return identity, d.kill(ctx, leader)
}

// holds reports whether the process that runs in a pod holds a lease. The holder's identity is the pod's
// name, which is its host name, and what tells the process from others; but it may be that of a process
// that was killed, and the container has started again. Only a lease renewed since then is the present
// one's. The start is known to the second.
func (d *Deployed) holds(pod corev1.Pod, lease *coordinationv1.Lease) bool {
	status := d.managerIn(pod)
	return strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_") && status.State.Running != nil &&
		lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(status.State.Running.StartedAt.Add(time.Second))
}

func (d *Deployed) kill(ctx context.Context, pods []corev1.Pod) error {
	killed := map[string]bool{}
	for _, pod := range pods {
		id := d.managerIn(pod).ContainerID
		if err := cluster.KillContainer(ctx, d.cluster, pod.Spec.NodeName, strings.TrimPrefix(id, "containerd://")); err != nil {
			return fmt.Errorf("killing the operator in pod %s: %w", pod.Name, err)
		}
		killed[id] = true
	}
	return d.waitPods(ctx, crashTimeout, "the operator to run again", func(pods []corev1.Pod) bool {
		return d.complete(pods) && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return killed[d.managerIn(pod).ContainerID] })
	})
}

// managerIn is what a pod says of the operator's container; it is empty if there is none yet.
func (d *Deployed) managerIn(pod corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == d.manifest.container.Name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// complete reports whether there are as many pods as there are to be, and all are ready.
func (d *Deployed) complete(pods []corev1.Pod) bool {
	return len(pods) == int(d.replicas) && !slices.ContainsFunc(pods, notReady)
}

// Scale sets the Deployment's replicas, also for a later Start, and waits until the pods are ready.
func (d *Deployed) Scale(ctx context.Context, replicas int) error {
	if replicas < 1 {
		return fmt.Errorf("scaling the operator to %d: use Stop", replicas)
	}
	d.replicas = int32(replicas)
	return d.Start(ctx)
}

// Stop scales the Deployment to 0 and waits until no pod is left.
func (d *Deployed) Stop(ctx context.Context) error {
	if err := scale(ctx, d.clients, d.manifest.deployment, 0); err != nil {
		return err
	}
	return d.waitPods(ctx, readyTimeout, "the operator's pods to be gone", func(pods []corev1.Pod) bool { return len(pods) == 0 })
}

// Start scales the Deployment to what its manifest says, or Scale did, and waits until the pods are
// ready.
func (d *Deployed) Start(ctx context.Context) error {
	if err := scale(ctx, d.clients, d.manifest.deployment, d.replicas); err != nil {
		return err
	}
	return d.waitPods(ctx, readyTimeout, "the operator's pods to be ready", d.complete)
}

// Metrics asks through a port forwarded to the first pod: the API server's proxy would take the
// bearer token for itself.
func (d *Deployed) Metrics(ctx context.Context, token string) (int, string, error) {
	port, err := d.manifest.metricsPort()
	if err != nil {
		return 0, "", err
	}
	pods, err := d.pods(ctx)
	if err != nil {
		return 0, "", err
	}
	if len(pods) == 0 {
		return 0, "", errors.New("asking for metrics: the operator has no pod")
	}
	local, stop, err := Forward(ctx, d.cfg, pods[0].Namespace, pods[0].Name, port)
	if err != nil {
		return 0, "", err
	}
	defer stop()
	return getMetrics(ctx, local, token)
}

func (d *Deployed) pods(ctx context.Context) ([]corev1.Pod, error) {
	selector := metav1.FormatLabelSelector(d.manifest.deployment.Spec.Selector)
	list, err := d.clients.CoreV1().Pods(d.Namespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	return list.Items, nil
}

func (d *Deployed) waitPods(ctx context.Context, limit time.Duration, what string, done func([]corev1.Pod) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		pods, err := d.pods(ctx)
		return err == nil && done(pods), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

func notReady(pod corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// scale is for good: the Deployment is not set aside any more.
func scale(ctx context.Context, clients kubernetes.Interface, d *appsv1.Deployment, replicas int32) error {
	return patchReplicas(ctx, clients, d, replicas, "null")
}

// patchReplicas also sets asideAnnotation, to a value in JSON.
func patchReplicas(ctx context.Context, clients kubernetes.Interface, d *appsv1.Deployment, replicas int32, aside string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}},"spec":{"replicas":%d}}`, asideAnnotation, aside, replicas)
	_, err := clients.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "harness"})
	if err != nil {
		return fmt.Errorf("scaling Deployment %s/%s to %d: %w", d.Namespace, d.Name, replicas, err)
	}
	return nil
}
