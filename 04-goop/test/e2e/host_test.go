package e2e

import (
	"context"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/operator"
)

const hostFlag = "--allow-host-access"

var readsHost = []string{"cat", "/host/etc/hostname"}

func init() { simulates(readsHost, endsWith(0, "NODE\n")) }

var _ = Describe("Host access", func() {
	spec("is rejected, with a condition that names the flag, and nothing is created", func(w *testEnv) {
		for name, host := range map[string]v1alpha1.HostAccess{
			"root-ro": {Root: v1alpha1.HostRootReadOnly}, "root-rw": {Root: v1alpha1.HostRootReadWrite}, "pid": {PID: true}, "network": {Network: true},
		} {
			goop := w.create(name, v1alpha1.GoopSpec{Cmd: readsHost, Host: &host, CleanupCmd: cleans})
			Expect(w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonHostAccessNotAllowed).Message).
				To(ContainSubstring(hostFlag), name)
			w.hasEvent(goop, "Warning", v1alpha1.ReasonHostAccessNotAllowed)
		}
		w.leaves(only("root-ro"), only("root-rw"), only("pid"), only("network"))
	})
	spec("is not requested by a Goop with None", func(w *testEnv) {
		goop := w.create("none", v1alpha1.GoopSpec{Cmd: greets, Host: &v1alpha1.HostAccess{Root: v1alpha1.HostRootNone}})
		w.complete(goop, len(w.nodes()))
		for _, pod := range w.pods(goop) {
			for _, volume := range pod.Spec.Volumes {
				Expect(volume.HostPath).To(BeNil())
			}
		}
	})
})

var _ = Describe("Host access", func() {
	It("is permitted with the flag: the node's /host/etc/hostname can be read, and not be written", Serial, func(ctx SpecContext) {
		withArgs(ctx, hostFlag)
		w := newTestEnv(ctx)
		nodes := w.nodes()
		cannotWrite := does(`test -r /host/etc/hostname && ! touch /host/etc/goop-was-here 2>/dev/null`, endsWith(0, ""))
		host := &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadOnly}
		reads := w.create("reads", v1alpha1.GoopSpec{Cmd: readsHost, Host: host})
		writes := w.create("writes", v1alpha1.GoopSpec{Cmd: cannotWrite, Host: host})
		all := w.create("all", v1alpha1.GoopSpec{Cmd: greets, Host: &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadWrite, PID: true, Network: true}})
		for _, goop := range []*v1alpha1.Goop{reads, writes, all} {
			w.complete(goop, len(nodes))
		}
		for _, pod := range w.pods(all) {
			Expect(pod.Spec.HostPID).To(BeTrue())
			Expect(pod.Spec.HostNetwork).To(BeTrue())
		}
		if env.Cluster.RunsContainers() {
			outputs := w.outputs(reads)
			for _, node := range nodes {
				Expect(outputs).To(HaveKeyWithValue(node+"/0", node+"\n"))
			}
		}
		// The sample requests it too.
		sample := read("../../config/samples/v1alpha1_goop_host.yaml")[0]
		sample.Namespace = w.namespace
		Expect(env.Client.Create(ctx, sample)).To(Succeed())
		w.complete(sample, len(nodes))
	})
})

// withArgs runs the operator with more arguments until the spec ends.
func withArgs(ctx context.Context, args ...string) {
	GinkgoHelper()
	if !env.Cluster.RunsContainers() {
		Expect(env.Operator.Stop(ctx)).To(Succeed())
		process, err := operator.Run(ctx, GinkgoWriter, operator.Options{
			Cluster: env.Cluster, StageDir: env.Stage.Dir, Images: env.Images, Args: slices.Concat(env.Stage.OperatorArgs, args),
			Log: filepath.Join(env.Artifacts, "operator-with-arguments.log"),
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the spec's own context ends with it
			Expect(process.Stop(ctx)).To(Succeed())
			Expect(env.Operator.Start(ctx)).To(Succeed())
		})
		return
	}
	objects, err := env.Render(env.Images, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(deploy.Deploy(ctx, GinkgoWriter, env.Config, objects)).To(Succeed())
	DeferCleanup(redeploy)
}

// redeploy deploys the operator as the suite did.
func redeploy(ctx SpecContext) {
	GinkgoHelper()
	objects, err := env.Render(env.Images)
	Expect(err).NotTo(HaveOccurred())
	Expect(deploy.Deploy(ctx, GinkgoWriter, env.Config, objects)).To(Succeed())
}
