package bench

import (
	"os"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/binaries"
)

// measureGoop runs a Goop on n nodes, without a jobCount or with one worker for each node. In the second case every
// worker fails, which results in the longest status.
func (r *runner) measureGoop(n int, jobCount *int32) goopFigures {
	namespace := r.namespace()
	cmd, end := []string{"echo", "hello"}, v1alpha1.ConditionComplete
	if jobCount != nil {
		cmd, end = []string{noLuck}, v1alpha1.ConditionFailed
	}
	goop := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"},
		Spec:       v1alpha1.GoopSpec{Cmd: cmd, JobCount: jobCount, NodeSelector: map[string]string{benchLabel: "true"}},
	}
	stopMemory := r.watchMemory()
	before, cpu := r.reconciliations(), r.cpu()
	began := time.Now()
	must(r.B, r.client.Create(r.ctx, goop))
	r.until("the Goop to be over", func() bool {
		must(r.B, r.client.Get(r.ctx, client.ObjectKeyFromObject(goop), goop))
		return apimeta.IsStatusConditionTrue(goop.Status.Conditions, end)
	})
	f := goopFigures{took: time.Since(began)}
	f.cpu = r.cpu().Since(cpu)
	f.pods(began, r.kubelets.in(namespace))
	r.waitSteadyState()
	must(r.B, r.client.Get(r.ctx, client.ObjectKeyFromObject(goop), goop))
	f.reconciliations, f.peak = r.reconciliations()-before, stopMemory()
	f.finished = int(goop.Status.Succeeded + goop.Status.Failed)
	f.sizes(r, goop)
	writes, err := audit.Read(r.ctx, r.env.Cluster, audit.By(r.env.Operator.User()), audit.Writes(), audit.Budgeted(), audit.InNamespace(namespace))
	must(r.B, err)
	f.writes = writes
	r.clear(namespace, goop)
	if f.finished != n {
		r.Fatalf("%d workers have finished, not %d", f.finished, n)
	}
	return f
}

// waitSteadyState waits until the operator has made no reconciliation for two seconds: the last events of pods arrive
// after the end.
func (r *runner) waitSteadyState() {
	for before := r.reconciliations(); ; {
		time.Sleep(2 * time.Second)
		now := r.reconciliations()
		if now == before {
			return
		}
		before = now
	}
}

// pods copies when pods were created, and when the last work has ended.
func (f *goopFigures) pods(began time.Time, c counts) {
	f.made, f.ended, f.events = c.lastMade.Sub(began), c.lastEnded.Sub(began), c.events
}

// sizes measures the objects as the API server sends them.
func (f *goopFigures) sizes(r *runner, goop *v1alpha1.Goop) {
	f.goopBytes = len(encode(goop))
	var daemonSets appsv1.DaemonSetList
	must(r.B, r.client.List(r.ctx, &daemonSets, client.InNamespace(goop.Namespace)))
	for i := range daemonSets.Items {
		f.daemonSetBytes += len(encode(&daemonSets.Items[i]))
	}
	var configMaps corev1.ConfigMapList
	must(r.B, r.client.List(r.ctx, &configMaps, client.InNamespace(goop.Namespace), client.MatchingLabels{v1alpha1.LabelGoop: goop.Name}))
	f.shards = len(configMaps.Items)
	for i := range configMaps.Items {
		f.recordBytes += len(encode(&configMaps.Items[i]))
	}
}

// measurePlain runs a plain DaemonSet with the same work. plain/watch.sh detects its end.
func (r *runner) measurePlain() plainFigures {
	namespace := r.namespace()
	text, err := os.ReadFile(r.plainFile("daemonset.yaml"))
	must(r.B, err)
	daemonSet := &appsv1.DaemonSet{}
	must(r.B, yaml.UnmarshalStrict(text, daemonSet))
	daemonSet.Namespace = namespace
	daemonSet.Spec.Template.Spec.NodeSelector = map[string]string{benchLabel: "true"}
	kubectl, err := binaries.Ensure(r.ctx, os.Stdout, "kubectl")
	must(r.B, err)
	began, cpu := time.Now(), r.cpu()
	must(r.B, r.client.Create(r.ctx, daemonSet))
	cmd := exec.CommandContext(r.ctx, "sh", r.plainFile("watch.sh"), "--namespace", namespace,
		"--kubeconfig", r.env.Cluster.Kubeconfig(), "--context", r.env.Cluster.Context())
	cmd.Env = append(os.Environ(), "PATH="+kubectl+string(os.PathListSeparator)+os.Getenv("PATH"))
	if output, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("watching the plain DaemonSet: %v\n%s", err, output)
	}
	c := r.kubelets.in(namespace)
	f := plainFigures{took: time.Since(began), cpu: r.cpu().Since(cpu), made: c.lastMade.Sub(began), ended: c.lastEnded.Sub(began), finished: c.ended}
	r.clear(namespace, daemonSet)
	return f
}

func (r *runner) namespace() string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	must(r.B, r.client.Create(r.ctx, namespace))
	return namespace.Name
}

// clear deletes an object and waits until its pods no longer exist, so that they do not affect the next measurement.
func (r *runner) clear(namespace string, object client.Object) {
	must(r.B, r.client.Delete(r.ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	r.until("the pods to be gone", func() bool { return r.kubelets.in(namespace).there == 0 })
}
