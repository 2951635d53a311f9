package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// noLuck is the command that is simulated to fail, with the longest output that is kept.
const noLuck = "no-luck"

// kubelets simulate the pods of all nodes: the work of each runs, and ends with the next step. They count the events of
// pods, which the operator receives too.
type kubelets struct {
	queue workqueue.TypedInterface[types.NamespacedName]
	pods  listers.PodLister

	mu     sync.Mutex
	counts map[string]*counts // by namespace
}

// counts are the counts of pods in a namespace.
type counts struct {
	// made is the number of created pods, there of existing ones, and ended of those whose work has ended.
	made, there, ended, events int
	lastMade, lastEnded        time.Time
}

// startKubelets runs the kubelets until the end of the benchmark.
func (r *runner) startKubelets() {
	factory := informers.NewSharedInformerFactory(r.clients, 0)
	pods := factory.Core().V1().Pods()
	k := &kubelets{queue: workqueue.NewTyped[types.NamespacedName](), pods: pods.Lister(), counts: map[string]*counts{}}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			k.count(object, func(c *counts) { c.made++; c.there++; c.lastMade = time.Now() })
		},
		UpdateFunc: func(_, object any) { k.count(object, func(*counts) {}) },
		DeleteFunc: func(object any) { k.count(object, func(c *counts) { c.there-- }) },
	})
	must(r.B, err)
	r.kubelets = k
	factory.Start(r.ctx.Done())
	factory.WaitForCacheSync(r.ctx.Done())
	for range atOnce {
		go k.work(r)
	}
	go func() { <-r.ctx.Done(); k.queue.ShutDown() }()
}

func (k *kubelets) count(object any, add func(*counts)) {
	if gone, isGone := object.(cache.DeletedFinalStateUnknown); isGone {
		object = gone.Obj
	}
	pod := object.(*corev1.Pod)
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.of(pod.Namespace)
	c.events++
	add(c)
	if strings.HasPrefix(pod.Spec.NodeName, "bench-") {
		k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

// of is called with the lock held.
func (k *kubelets) of(namespace string) *counts {
	if k.counts[namespace] == nil {
		k.counts[namespace] = &counts{}
	}
	return k.counts[namespace]
}

// in returns the current counts of a namespace.
func (k *kubelets) in(namespace string) counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *k.of(namespace)
}

func (k *kubelets) work(r *runner) {
	for {
		key, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if pod, err := k.pods.Pods(key.Namespace).Get(key.Name); err == nil {
			k.step(r, pod)
		}
		k.queue.Done(key)
	}
}

// step advances a pod by one step. A failed update is mostly a conflict, and the pod's next event triggers another step.
func (k *kubelets) step(r *runner, pod *corev1.Pod) {
	pods := r.clients.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		_ = pods.Delete(r.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	case len(pod.Status.InitContainerStatuses) == 0:
		_, _ = pods.Patch(r.ctx, pod.Name, types.StrategicMergePatchType, runs, metav1.PatchOptions{}, "status")
	case pod.Status.Phase == corev1.PodPending:
		body := succeeds
		if strings.HasSuffix(strings.Join(pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].Command, " "), noLuck) {
			body = doesNot
		}
		if _, err := pods.Patch(r.ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err == nil {
			k.mu.Lock()
			c := k.of(pod.Namespace)
			c.ended++
			c.lastEnded = time.Now()
			k.mu.Unlock()
		}
	}
}

// The states of a pod as kubelets report them: its work runs; its work has ended with 0, and the pod pauses; the same
// with another exit code.
var (
	runs     = saying(corev1.PodPending, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	succeeds = saying(corev1.PodRunning, over(worker.Record{Tries: 1, Output: "hello\n"}))
	doesNot  = saying(corev1.PodRunning, over(worker.Record{ExitCode: 3, Tries: 4, Output: strings.Repeat("no luck\n", worker.MaxOutput/8)}))
)

func over(record worker.Record) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(encode(record)), FinishedAt: metav1.Now()}}
}

func saying(phase corev1.PodPhase, work corev1.ContainerState) []byte {
	status := corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{
		{Name: "install", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
		{Name: v1alpha1.WorkContainer, State: work},
	}}
	if phase == corev1.PodRunning {
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pause", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		}
	}
	return encode(map[string]any{"status": status})
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("this is always JSON: %v", err))
	}
	return text
}
