package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/cluster"
)

// Where no containers run, a small kubelet plays the workers. What one does is told by its command: each command of
// these specs that is to be played has its deed.

// deed is what becomes of a worker that has run for a time: its record, or nil if it runs on. The output may name
// NODE and ROUND.
type deed func(pod *corev1.Pod, ran time.Duration) *worker.Record

// deeds are those of commands.
var deeds sync.Map

// does is a command: in a container the script, elsewhere the deed.
func does(script string, play deed) []string {
	cmd := sh(script)
	plays(cmd, play)
	return cmd
}

// plays gives a command its deed. The command may have one: of all specs the commands are played together, and one that
// another spec relies on stays.
func plays(cmd []string, play deed) { deeds.LoadOrStore(strings.Join(cmd, "\x00"), play) }

// sh is a command for sh.
func sh(script string) []string { return []string{"sh", "-c", script} }

// endsWith is the deed of a command that ends at once. One that does not end with 0 has been tried as often as could
// be.
func endsWith(code int32, output string) deed {
	return func(pod *corev1.Pod, _ time.Duration) *worker.Record {
		return recordOf(pod, code, output)
	}
}

// endsAfter is the deed of a command that succeeds after a time.
func endsAfter(limit time.Duration) deed {
	return func(pod *corev1.Pod, ran time.Duration) *worker.Record {
		if ran < limit {
			return nil
		}
		return recordOf(pod, 0, "")
	}
}

// onlyOn is the deed of a command that succeeds on the node that a variable names, and runs on elsewhere.
func onlyOn(name string) deed {
	return func(pod *corev1.Pod, _ time.Duration) *worker.Record {
		if pod.Spec.NodeName != variable(pod, name) {
			return nil
		}
		return recordOf(pod, 0, "")
	}
}

func never(*corev1.Pod, time.Duration) *worker.Record { return nil }

// recordOf is that of a worker which has been tried once, or as often as could be if it has failed.
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
	// onOne fails on the node that the variable BAD names, and runs on elsewhere.
	onOne = does(`test "$NODE_NAME" != "$BAD" || { echo "no luck on $NODE_NAME" >&2; exit 7; }; sleep 600`,
		func(pod *corev1.Pod, _ time.Duration) *worker.Record {
			if pod.Spec.NodeName != variable(pod, "BAD") {
				return nil
			}
			return recordOf(pod, 7, "no luck on NODE\n")
		})
	// quickOnOne ends at once on the node that the variable QUICK names, and takes its time elsewhere.
	quickOnOne = does(`test "$NODE_NAME" = "$QUICK" || sleep 30`, func(pod *corev1.Pod, ran time.Duration) *worker.Record {
		if pod.Spec.NodeName != variable(pod, "QUICK") && ran < 4*time.Second {
			return nil
		}
		return recordOf(pod, 0, "")
	})
)

// startKubelet has the kubelet play from the first spec on, until the process ends.
var _ = BeforeEach(sync.OnceFunc(func() {
	if env.Cluster.RunsContainers() {
		return
	}
	go func() {
		for tick := time.Tick(200 * time.Millisecond); ; <-tick {
			playAll(context.Background()) // no spec's: it is for all of them
		}
	}()
}))

// playAll brings the pods of all Goops one step further. What fails is tried again with the next look.
func playAll(ctx context.Context) {
	var pods corev1.PodList
	if env.Client.List(ctx, &pods, client.HasLabels{v1alpha1.LabelGoop}) != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Annotations[cluster.ManualPodAnnotation] == "" {
			continue
		}
		play, known := deeds.Load(strings.ReplaceAll(strings.Join(argv(pod), "\x00"), "$$", "$"))
		if !known {
			continue
		}
		work := statusOf(pod)
		switch {
		case work == nil:
			setWork(pod, isRunning())
		case work.State.Running == nil:
			continue
		default:
			record := play.(deed)(pod, time.Since(work.State.Running.StartedAt.Time))
			if record == nil {
				continue
			}
			setWork(pod, hasEnded(*record))
		}
		_ = env.Client.Status().Update(ctx, pod)
	}
}

// workOf is the container of a pod in which its worker runs.
func workOf(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.WorkContainer })
	if i < 0 {
		panic("pod " + pod.Name + " has no container for its work")
	}
	return &pod.Spec.InitContainers[i]
}

// argv is the command of a pod's worker, with each $ doubled.
func argv(pod *corev1.Pod) []string {
	command := workOf(pod).Command
	return command[slices.Index(command, "--")+1:]
}

// variable is a variable that a pod's worker sees.
func variable(pod *corev1.Pod, name string) string {
	for _, one := range workOf(pod).Env {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// statusOf is what a pod tells of its worker; nil if it tells nothing.
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

// setWork sets the status of a pod whose worker is in a state. When that has ended, the pod has only to pause.
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
