package e2e

import (
	"fmt"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/expect"
)

// Workers that run until the spec lets them end: it takes as long as what the spec does meanwhile, on any machine.

const (
	// letFile is the file that untilLet, a script, waits for.
	letFile  = "/tmp/let"
	untilLet = "until test -e " + letFile + "; do sleep 1; done"
	// letAnnotation on a pod has the same meaning for a simulated worker.
	letAnnotation = "goop.example.com/let"
)

// whenLet is the behaviour of a command that ends at once on the node in a variable, and elsewhere when it is let.
func whenLet(name string) behaviour {
	return func(pod *corev1.Pod) *worker.Record {
		if pod.Spec.NodeName != variable(pod, name) && pod.Annotations[letAnnotation] == "" {
			return nil
		}
		return recordOf(pod, 0, "")
	}
}

// letEnd lets the workers of Goops end, also those that start later, until all Goops are Complete.
func (w *testEnv) letEnd(goops ...*v1alpha1.Goop) {
	GinkgoHelper()
	let := map[types.UID]bool{}
	Eventually(w.ctx, func(g Gomega) {
		for _, goop := range goops {
			for _, pod := range w.pods(goop) {
				if work := statusOf(&pod); work != nil && work.State.Running != nil && pod.DeletionTimestamp == nil && !let[pod.UID] {
					g.Expect(w.let(&pod)).To(Succeed(), pod.Name)
					let[pod.UID] = true
				}
			}
		}
		for _, goop := range goops {
			g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(goop), goop)).To(Succeed())
			g.Expect(apimeta.IsStatusConditionTrue(goop.Status.Conditions, v1alpha1.ConditionComplete)).To(BeTrue(), "%s is not Complete", goop.Name)
		}
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
}

// let lets the worker of one pod end.
func (w *testEnv) let(pod *corev1.Pod) error {
	if !env.Cluster.RunsContainers() {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, letAnnotation)
		return env.Client.Patch(w.ctx, pod, client.RawPatch(types.MergePatchType, patch))
	}
	clients, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	request := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: v1alpha1.WorkContainer, Command: sh("touch " + letFile), Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(env.Config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(w.ctx, remotecommand.StreamOptions{Stderr: io.Discard})
}
