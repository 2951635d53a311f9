package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// The operator and the kubelets, simulated by tests.

func (f *fake) update(name string, change func(*v1alpha1.Goop)) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if goop := f.goops[name]; goop != nil {
		goop = goop.DeepCopy()
		change(goop)
		f.goops[name] = goop
		f.change("goops", "MODIFIED", goop)
	}
}

func (f *fake) remove(name string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if goop := f.goops[name]; goop != nil {
		delete(f.goops, name)
		f.change("goops", "DELETED", goop.DeepCopy())
	}
}

func (f *fake) has(name string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.goops[name] != nil
}

// worker adds a pod whose command is running, with a handler for its log.
func (f *fake) worker(goop, node string, round int, log http.HandlerFunc) string {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d-%s", goop, round, node), Namespace: "test", UID: types.UID(node), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{
				v1alpha1.LabelGoop: goop, v1alpha1.LabelGoopUID: goop, v1alpha1.LabelRole: v1alpha1.RoleWork, v1alpha1.LabelRound: strconv.Itoa(round),
			},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "install"}, {
			Name: v1alpha1.WorkContainer, ContainerID: "id://" + node,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.pods[pod.Name], f.logs[pod.Name] = pod, log
	f.change("pods", "ADDED", pod)
	return pod.Name
}

// alter changes a pod.
func (f *fake) alter(pod string, change func(*corev1.Pod)) {
	f.lock.Lock()
	defer f.lock.Unlock()
	changed := f.pods[pod].DeepCopy()
	change(changed)
	f.pods[pod] = changed
	f.change("pods", "MODIFIED", changed)
}

// finish ends the command of a pod.
func (f *fake) finish(pod string, record worker.Record) {
	message, err := json.Marshal(record)
	if err != nil {
		f.t.Error(err)
	}
	f.terminate(pod, string(message))
}

// terminate ends the command of a pod with any termination message.
func (f *fake) terminate(pod, message string) {
	f.alter(pod, func(changed *corev1.Pod) {
		changed.Status.InitContainerStatuses[1].State = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: message},
		}
	})
}

func (f *fake) removePod(pod string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	old := f.pods[pod].DeepCopy()
	delete(f.pods, pod)
	delete(f.logs, pod)
	f.change("pods", "DELETED", old)
}

// end sets the status of a Goop that has ended.
func (f *fake) end(goop string, succeeded int32, failures ...v1alpha1.Failure) {
	f.update(goop, func(g *v1alpha1.Goop) {
		g.Status.ObservedGeneration, g.Status.Desired = 1, succeeded+int32(len(failures))
		g.Status.Succeeded, g.Status.Failed = succeeded, int32(len(failures))
		condition := metav1.Condition{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}
		highest := int32(0)
		if len(failures) > 0 {
			condition = metav1.Condition{
				Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWorkersFailed,
				Message: fmt.Sprintf("%d of %d workers failed", len(failures), g.Status.Desired),
			}
			for _, failure := range failures {
				highest = max(highest, failure.ExitCode)
			}
			g.Status.Failures = failures[:min(len(failures), v1alpha1.MaxFailures)]
		}
		g.Status.ExitCode = &highest
		g.Status.Conditions = []metav1.Condition{condition}
	})
}

// waits sets the condition Running of a Goop that waits.
func (f *fake) waits(goop, reason, message string) {
	f.update(goop, func(g *v1alpha1.Goop) {
		g.Status.ObservedGeneration = 1
		g.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		}}
	})
}

// text serves a complete log.
func text(log string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, log) }
}

// hangs serves a log that does not end.
func hangs(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "begun\n")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}
