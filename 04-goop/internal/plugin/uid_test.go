package plugin

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// A Goop was deleted and created again. The pods of the first still exist for a while.
func TestPodsOfAnEarlierGoopOfTheSameName(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("hello", "true")
	pod := f.worker("hello", "n2", 0, text("of the first\n"))
	f.alter(pod, func(pod *corev1.Pod) { pod.Labels[v1alpha1.LabelGoopUID] = "first" })
	f.finish(pod, worker.Record{ExitCode: 1, Tries: 1})
	f.ends("hello", "n1", 0, "of the second\n", 0)
	f.end("hello", 1)
	r := f.run("logs", "hello", "--follow", "--group")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(And(ContainSubstring("of the second"), Not(ContainSubstring("of the first"))))
	g.Expect(r.err).To(BeEmpty())
}

// The Goop's own pods no longer exist, and the existing pods belong to another Goop.
func TestAGoopThatHasThePodsOfAnotherOnly(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.end(f.goop("hello", "true"), 1, v1alpha1.Failure{Node: "n2", ExitCode: 1, Output: "oh"})
	for _, node := range []string{"n1", "n2"} {
		f.ends("hello", node, 0, "of another\n", 0)
		f.alter("hello-0-"+node, func(pod *corev1.Pod) { pod.Labels[v1alpha1.LabelGoopUID] = "another" })
	}
	r := f.run("logs", "hello")
	g.Expect(r).To(Equal(ran{0, "n2: oh\n", `goop: n2: its output is not available: no pod of it was found; shown is the end of it, at most 2 KiB, from the record
goop: the output of 1 of 2 workers is not available: no pods of them were found
`}))
}

// At its end run finds a Goop of another user under the name of its own.
func TestRunEndsNoOthersGoop(t *testing.T) {
	g, s := NewWithT(t), apiServer(t)
	flags := newFlags()
	flags.KubeConfig = &s.kubeconfig
	api, err := connect(flags, &buffer{}, false)
	g.Expect(err).NotTo(HaveOccurred())
	ctx := context.Background()
	others := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Name: "others", Namespace: "default"},
		Spec:       v1alpha1.GoopSpec{Cmd: []string{"true"}},
	}
	g.Expect(s.client.Create(ctx, others)).To(Succeed())
	t.Cleanup(func() { g.Expect(s.client.Delete(ctx, others)).To(Succeed()) })
	own := others.DeepCopy()
	own.UID = "of-mine"
	for _, keep := range []bool{true, false} {
		did, err := (&runFlags{keep: keep}).end(ctx, api, own, errTimedOut)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(did).To(BeEmpty(), "nothing was done")
		live, err := api.get(ctx, "others")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Spec.Suspend).To(BeFalse())
	}
}
