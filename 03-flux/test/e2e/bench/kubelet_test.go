package bench

import (
	"context"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/operator"
)

// kubelets is the number of concurrent writes of pod statuses.
const kubelets = 8

// makeReady reports all pods of a namespace to be ready.
func (r *runner) makeReady(namespace string) error {
	var pods corev1.PodList
	if err := r.env.Client.List(r.ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	next := make(chan *corev1.Pod)
	errs := make(chan error, len(pods.Items))
	var workers sync.WaitGroup
	for range kubelets {
		workers.Go(func() {
			for pod := range next {
				errs <- r.env.Client.Status().Patch(r.ctx, ready(pod), client.MergeFrom(pod))
			}
		})
	}
	for i := range pods.Items {
		next <- &pods.Items[i]
	}
	close(next)
	workers.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ready is the status of a ready pod, as its kubelet would write it.
func ready(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "flux", Image: "example.com/none", Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}
	return pod
}

// watchMemory samples the operator's resident memory until stop is called, which returns the peak.
func (r *runner) watchMemory() (stop func() (peak uint64)) {
	proc, err := process.NewProcessWithContext(r.ctx, int32(r.env.Operator.(*operator.Process).Pid()))
	must(r.B, err)
	ctx, cancel := context.WithCancel(r.ctx)
	result := make(chan uint64, 1)
	go func() {
		var peak uint64
		defer func() { result <- peak }()
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			if memory, err := proc.MemoryInfoWithContext(ctx); err == nil {
				peak = max(peak, memory.RSS)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { cancel(); return <-result }
}
