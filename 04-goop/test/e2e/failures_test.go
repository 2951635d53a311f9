package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/expect"
)

const (
	// grace is the time in which terminating workers end: the ten seconds that each has, and what the nodes need on a busy
	// machine.
	grace = 40 * time.Second
	// unpullable is an image that no node can pull, and pullError the kubelet's message about it.
	unpullable = "no-such-registry.invalid/busybox:1"
	pullError  = `failed to pull and unpack image "` + unpullable + `": failed to resolve reference: dial tcp: lookup no-such-registry.invalid: no such host`
)

var (
	// thirdTime fails twice and then succeeds.
	thirdTime = does(`n=$(cat /tmp/tries 2>/dev/null || echo 0); n=$((n + 1)); echo "$n" >/tmp/tries; echo "try $n"; test "$n" -gt 2`,
		func(*corev1.Pod) *worker.Record { return &worker.Record{Tries: 3, Output: "try 3\n"} })
	// noProgram does not exist.
	noProgram = []string{"no-such-program", "argument"}
)

func init() { simulates(noProgram, endsWith(127, "no-such-program: not found\n")) }

var _ = Describe("A worker", func() {
	spec("that fails twice and then succeeds has succeeded, in three tries", func(w *testEnv) {
		goop := w.create("third", v1alpha1.GoopSpec{Cmd: thirdTime, JobCount: new(int32(1)), Retries: new(int32(3))})
		w.complete(goop, 1)
		pod := w.waitForPods(goop, 1)[0]
		record, err := worker.ParseRecord(statusOf(&pod).State.Terminated.Message)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Tries).To(BeEquivalentTo(3))
		Expect(record.Output).To(Equal("try 3\n"))
		Expect(statusOf(&pod).RestartCount).To(BeZero(), "the worker tries again, not the kubelet")
		if env.Cluster.RunsContainers() {
			Expect(w.outputs(goop)).To(HaveEach(And(ContainSubstring("try 1\n"), ContainSubstring("try 2\n"), ContainSubstring("try 3\n"))))
		}
	})
	spec("that never succeeds is listed with its node, exit code and output, and under Continue the others finish", func(w *testEnv) {
		nodes := w.nodes()
		bad := nodes[len(nodes)-1]
		cmd := does(`test "$NODE_NAME" != "$BAD" || { echo "no luck on $NODE_NAME" >&2; exit 7; }; sleep 3`, func(pod *corev1.Pod) *worker.Record {
			if pod.Spec.NodeName == variable(pod, "BAD") {
				return recordOf(pod, 7, "no luck on NODE\n")
			}
			return recordOf(pod, 0, "")
		})
		goop := w.create("continue", v1alpha1.GoopSpec{
			Cmd: cmd, Retries: new(int32(1)), Env: []v1alpha1.EnvVar{{Name: "BAD", Value: bad}},
		})
		message := w.failed(goop, v1alpha1.ReasonWorkersFailed)
		Expect(message).To(And(ContainSubstring(bad), ContainSubstring("exit code 7")))
		Expect(goop.Status.Succeeded).To(BeEquivalentTo(len(nodes) - 1))
		Expect(goop.Status.Failed).To(BeEquivalentTo(1))
		Expect(goop.Status.ExitCode).To(HaveValue(BeEquivalentTo(7)))
		Expect(goop.Status.Failures).To(Equal([]v1alpha1.Failure{{Node: bad, ExitCode: 7, Output: "no luck on " + bad + "\n"}}))
		w.hasEvent(goop, "Warning", v1alpha1.ReasonWorkersFailed)
		pod := w.podOn(goop, bad)
		record, err := worker.ParseRecord(statusOf(pod).State.Terminated.Message)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Tries).To(BeEquivalentTo(2), "one more than retries")
	})
	spec("that never succeeds ends the others under FailFast", func(w *testEnv) {
		nodes := w.nodes()
		bad := nodes[0]
		goop := w.create("failfast", v1alpha1.GoopSpec{
			Cmd: onOne, Retries: new(int32(1)), FailurePolicy: v1alpha1.FailurePolicyFailFast,
			Env: []v1alpha1.EnvVar{{Name: "BAD", Value: bad}},
		})
		Expect(w.failed(goop, v1alpha1.ReasonWorkersFailed)).To(ContainSubstring("FailFast"))
		Expect(goop.Status.Failures).To(HaveLen(1))
		Expect(goop.Status.ExitCode).To(HaveValue(BeEquivalentTo(7)))
		Eventually(func() []corev1.Pod { return w.pods(goop) }).WithTimeout(grace).WithPolling(expect.Interval).
			Should(HaveExactElements(HaveField("Spec.NodeName", bad)), "its pod stays, with its log")
		until(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeZero()) })
	})
	spec("whose program does not exist ends with 127", func(w *testEnv) {
		goop := w.create("nothing", v1alpha1.GoopSpec{Cmd: noProgram, JobCount: new(int32(1)), Retries: new(int32(2))})
		w.failed(goop, v1alpha1.ReasonWorkersFailed)
		Expect(goop.Status.ExitCode).To(HaveValue(BeEquivalentTo(127)))
		Expect(goop.Status.Failures[0].Output).To(ContainSubstring("no-such-program"))
	})
	onContainers("that is killed again and again is tried no more often than retries allows", func(w *testEnv) {
		goop := w.create("killed", v1alpha1.GoopSpec{Cmd: sh("kill -9 $$"), JobCount: new(int32(1)), Retries: new(int32(1))})
		w.failed(goop, v1alpha1.ReasonWorkersFailed)
		Expect(goop.Status.ExitCode).To(HaveValue(BeEquivalentTo(128 + 9)))
		record, err := worker.ParseRecord(statusOf(&w.waitForPods(goop, 1)[0]).State.Terminated.Message)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Tries).To(BeEquivalentTo(2))
	})
})

// That pods are not created is reported after a while, and the DaemonSet controller then waits long until it tries again.
var _ = Describe("Bad input:", SpecPriority(1), func() {
	isRejected("a jobCount of 0", "job-count-zero.yaml", "spec.jobCount")
	isRejected("an empty cmd", "cmd-empty.yaml", "spec.cmd")
	isRejected("an env name that is none", "env-name-is-none.yaml", "spec.env[0].name")
	isRejected("a Goop name too long for its DaemonSets", "name-too-long.yaml", "metadata.name")

	spec("a selector that matches no node is NoEligibleNodes, until an eligible node joins", func(w *testEnv) {
		key := w.namespace + ".example.com/selected"
		goop := w.create("choosy", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2)), NodeSelector: map[string]string{key: "yes"}})
		Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNoEligibleNodes).Message).
			To(ContainSubstring("spec.nodeSelector"))
		w.hasEvent(goop, "Warning", v1alpha1.ReasonNoEligibleNodes)
		Expect(w.pods(goop)).To(BeEmpty())

		node := w.nodes()[0]
		w.label(node, key, "yes")
		defer w.label(node, key, "")
		w.complete(goop, 2)
		Expect(w.spread(goop)).To(Equal(map[string]int{node: 2}))
	})
	spec("an image that cannot be pulled is ImageNotPulled, with the kubelet's message", func(w *testEnv) {
		goop := w.create("unpullable", v1alpha1.GoopSpec{Cmd: sh("not simulated"), Image: unpullable, JobCount: new(int32(1))})
		if !env.Cluster.RunsContainers() {
			pod := w.waitForPods(goop, 1)[0]
			until(w, &pod, func(g Gomega, p *corev1.Pod) {
				setWork(p, isWaiting("ErrImagePull", pullError))
				g.Expect(env.Client.Status().Update(w.ctx, p)).To(Succeed())
			})
		}
		Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonImageNotPulled).Message).
			To(And(ContainSubstring(unpullable), ContainSubstring(w.waitForPods(goop, 1)[0].Spec.NodeName)))
		w.hasEvent(goop, "Warning", v1alpha1.ReasonImageNotPulled)
		w.delete(goop)
		w.leaves()
	})
	spec("a quota that leaves no room for pods is PodsNotCreated, with the command that shows the reason, until there is room", func(w *testEnv) {
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		Expect(env.Client.Create(w.ctx, quota)).To(Succeed())
		until(w, quota, func(g Gomega, live *corev1.ResourceQuota) { g.Expect(live.Status.Hard).NotTo(BeEmpty()) })
		goop := w.create("crowded", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2))})
		Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonPodsNotCreated).Message).
			To(ContainSubstring("kubectl events --for daemonset/crowded-0"))
		Expect(w.kubectl("events", "--for", "daemonset/crowded-0")).To(ContainSubstring("exceeded quota"))
		Expect(env.Client.Delete(w.ctx, quota)).To(Succeed())
		// The back-off of the DaemonSet controller doubles with each try, and each change of the DaemonSet is one more.
		until(w, &w.daemonSets(goop)[0], func(g Gomega, live *appsv1.DaemonSet) {
			retry := fmt.Appendf(nil, `{"metadata":{"annotations":{"retry":%q}}}`, live.ResourceVersion)
			g.Expect(env.Client.Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", retry))).To(Succeed())
			g.Expect(w.pods(goop)).NotTo(BeEmpty())
		})
		w.complete(goop, 2)
	})
	spec("more than 32 workers a node is TooManyRounds, with the number of workers", func(w *testEnv) {
		most := v1alpha1.MaxRounds * len(w.nodes())
		goop := w.create("many", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(most + 1))})
		Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonTooManyRounds).Message).
			To(ContainSubstring(fmt.Sprint(most + 1)))
		Expect(w.daemonSets(goop)).To(BeEmpty())
	})
	spec("a change of the spec is rejected, except of suspend, TTL and deadline", func(w *testEnv) {
		goop := w.create("fixed", v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(1))})
		for _, patch := range []string{
			`{"spec":{"cmd":["true"]}}`, `{"spec":{"jobCount":2}}`, `{"spec":{"retries":7}}`, `{"spec":{"image":"other"}}`, `{"spec":{"cleanupCmd":["true"]}}`,
		} {
			err := env.Client.Patch(w.ctx, goop.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
			Expect(err).To(MatchError(ContainSubstring("is immutable: delete the Goop and create another")), patch)
		}
		w.change(goop, func(spec *v1alpha1.GoopSpec) {
			spec.TTLSecondsAfterFinished, spec.ActiveDeadlineSeconds = new(int32(60)), new(int64(600))
		})
	})
	isNameConflict("DaemonSet", "taken-0", func(meta metav1.ObjectMeta) client.Object {
		labels := map[string]string{"app": "not-owned"}
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"no-such": "node"},
					Containers:   []corev1.Container{{Name: "not-owned", Image: "example.com/not-owned"}},
				},
			},
		}}
	})
	isNameConflict("ConfigMap", "taken-record-0", func(meta metav1.ObjectMeta) client.Object {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"record": "not owned"}}
	})
})

// isRejected declares a spec about a sample that the API server rejects.
func isRejected(what, file, field string) {
	spec(what+" is rejected, with the field's name", func(w *testEnv) {
		text, err := os.ReadFile(filepath.Join("../../config/samples/invalid", file))
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, object)).To(Succeed())
		object.SetNamespace(w.namespace)
		first, _, _ := strings.Cut(string(text), "\n")
		Expect(env.Client.Create(w.ctx, object)).To(MatchError(And(
			ContainSubstring(field), ContainSubstring(strings.TrimPrefix(first, "# Rejected: ")))))
	})
}

// isNameConflict declares a spec about an object that the Goop does not own and whose name it needs.
func isNameConflict(kind, name string, notOwned func(metav1.ObjectMeta) client.Object) {
	spec("a "+kind+" that has a needed name and another owner is a NameConflict until it is deleted, and is left unchanged", func(w *testEnv) {
		object := notOwned(metav1.ObjectMeta{Namespace: w.namespace, Name: name})
		Expect(env.Client.Create(w.ctx, object)).To(Succeed())
		goop := w.create("taken", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(1))})
		Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNameConflict).Message).
			To(And(ContainSubstring(kind), ContainSubstring(name)))
		uid, generation, owners := object.GetUID(), object.GetGeneration(), object.GetOwnerReferences()
		always(w, object, func(g Gomega, o client.Object) {
			g.Expect(o.GetUID()).To(Equal(uid))
			g.Expect(o.GetGeneration()).To(Equal(generation))
			g.Expect(o.GetOwnerReferences()).To(Equal(owners))
		})
		Expect(w.pods(goop)).To(BeEmpty())
		w.delete(object)
		w.complete(goop, 1)
	})
}
