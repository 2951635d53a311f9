package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/cluster"
)

// On the embedded cluster, a small kubelet simulates the workers. The behaviour of a worker depends on its command: each
// simulated command of these specs has a behaviour.

// behaviour returns the record of a worker that runs, or nil if it continues to run. The output may contain NODE and
// ROUND, which are replaced.
type behaviour func(pod *corev1.Pod) *worker.Record

// behaviours are the behaviours of commands.
var behaviours sync.Map

// does returns a command that runs the script in a container, and is simulated elsewhere.
func does(script string, act behaviour) []string {
	cmd := sh(script)
	simulates(cmd, act)
	return cmd
}

// simulates sets the behaviour of a command, unless another spec has set one.
func simulates(cmd []string, act behaviour) { behaviours.LoadOrStore(strings.Join(cmd, "\x00"), act) }

// sh returns a command for sh.
func sh(script string) []string { return []string{"sh", "-c", script} }

// endsWith is the behaviour of a command that ends at once. If it does not end with 0, all its tries have failed.
func endsWith(code int32, output string) behaviour {
	return func(pod *corev1.Pod) *worker.Record {
		return recordOf(pod, code, output)
	}
}

// onlyOn is the behaviour of a command that succeeds on the node in a variable, and continues to run elsewhere.
func onlyOn(name string) behaviour {
	return func(pod *corev1.Pod) *worker.Record {
		if pod.Spec.NodeName != variable(pod, name) {
			return nil
		}
		return recordOf(pod, 0, "")
	}
}

func never(*corev1.Pod) *worker.Record { return nil }

// recordOf is the record of a worker after one try, or after all tries if it has failed.
func recordOf(pod *corev1.Pod, code int32, output string) *worker.Record {
	tries := int32(1)
	if code != 0 {
		var retries int32
		if _, err := fmt.Sscanf(workOf(pod).Command[2], "%d", &retries); err != nil {
			panic(fmt.Sprintf("pod %s has no number of retries: %v", pod.Name, err))
		}
		tries += retries
	}
	output = strings.NewReplacer("NODE", pod.Spec.NodeName, "ROUND", pod.Labels[v1alpha1.LabelRound]).Replace(output)
	return &worker.Record{ExitCode: code, Tries: tries, Output: output}
}

// Commands that many specs use.
var (
	greets  = does(`echo "hello from $NODE_NAME, round $GOOP_ROUND"`, endsWith(0, "hello from NODE, round ROUND\n"))
	fails   = does("echo no luck >&2; exit 3", endsWith(3, "no luck\n"))
	endless = does("sleep 600", never)
	// onOne fails on the node in the variable BAD, and continues to run elsewhere.
	onOne = does(`test "$NODE_NAME" != "$BAD" || { echo "no luck on $NODE_NAME" >&2; exit 7; }; sleep 600`,
		func(pod *corev1.Pod) *worker.Record {
			if pod.Spec.NodeName != variable(pod, "BAD") {
				return nil
			}
			return recordOf(pod, 7, "no luck on NODE\n")
		})
	// quickOnOne ends at once on the node in the variable QUICK, and elsewhere when letEnd lets it.
	quickOnOne = does(`test "$NODE_NAME" = "$QUICK" || `+untilLet, whenLet("QUICK"))
)

// simulate runs the kubelet in the namespace of a spec until the spec ends. It is in the process of the spec, which has the
// behaviours of its commands.
func (w *testEnv) simulate() {
	GinkgoHelper()
	if env.Cluster.RunsContainers() {
		return
	}
	go func() {
		for w.ctx.Err() == nil {
			if err := w.advanceAll(); err != nil {
				GinkgoWriter.Printf("simulated kubelet: %v\n", err)
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
}

// advanceAll advances pods until its watch ends or an update fails. A new watch begins with the pods that exist. If another
// writer was first, its change is the next event.
func (w *testEnv) advanceAll() error {
	watcher, err := env.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelGoop})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type != watch.Deleted {
			if err := w.advance(pod); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		}
	}
	return nil
}

// advance advances a pod by one step.
func (w *testEnv) advance(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Annotations[cluster.ManualPodAnnotation] == "" {
		return nil
	}
	act, known := behaviours.Load(strings.ReplaceAll(strings.Join(argv(pod), "\x00"), "$$", "$"))
	if !known {
		return nil
	}
	work := statusOf(pod)
	switch {
	case work == nil:
		setWork(pod, isRunning())
	case work.State.Running == nil:
		return nil
	default:
		record := act.(behaviour)(pod)
		if record == nil {
			return nil
		}
		setWork(pod, hasEnded(*record))
	}
	return env.Client.Status().Update(w.ctx, pod)
}

// workOf returns the container of a pod that runs the work.
func workOf(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.WorkContainer })
	if i < 0 {
		panic("pod " + pod.Name + " has no container for its work")
	}
	return &pod.Spec.InitContainers[i]
}

// argv returns the command of a pod's worker, with each $ doubled.
func argv(pod *corev1.Pod) []string {
	command := workOf(pod).Command
	return command[slices.Index(command, "--")+1:]
}

// variable returns a variable of a pod's worker.
func variable(pod *corev1.Pod, name string) string {
	for _, one := range workOf(pod).Env {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// statusOf returns the status of a pod's work container; nil if there is none.
func statusOf(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if pod.Status.InitContainerStatuses[i].Name == v1alpha1.WorkContainer {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

func isRunning() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

// hasEnded is the state of a work container that has left its record.
func hasEnded(record worker.Record) corev1.ContainerState {
	message, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("a record is always JSON: %v", err))
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", Message: string(message), FinishedAt: metav1.Now(),
	}}
}

func isWaiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// setWork sets the status of a pod with the state of its work container. After the end of the work, the pod only pauses.
func setWork(pod *corev1.Pod, state corev1.ContainerState) {
	status := &pod.Status
	installed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "install", Ready: true, State: installed},
		{Name: v1alpha1.WorkContainer, Image: workOf(pod).Image, Ready: state.Terminated != nil, State: state},
	}
	status.Phase = corev1.PodPending
	if state.Terminated == nil {
		return
	}
	status.Phase = corev1.PodRunning
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pause", Ready: true, Started: new(true), State: isRunning()}}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}
}
