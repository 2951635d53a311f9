package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// What users of an operator for Flux ran into: https://github.com/flux-framework/flux-operator/issues.
var _ = Describe("flux-operator", func() {
	spec("#151, #214: workers do not outlive the broker", func(w *testEnv) {
		good := w.create("good", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 3})
		bad := w.create("bad", v1alpha1.FluxSpec{Command: sh("exit 3"), Size: 3})
		w.complete(good)
		w.begin(bad)
		w.endLeader(bad, 3, "")
		w.failed(bad, v1alpha1.ReasonCommandFailed)
		w.noPodsRun(good)
		w.noPodsRun(bad)
	})
	startsInOrder("the leader first", 0, 1, 2)
	startsInOrder("the leader last", 2, 1, 0)
	spec("#15, #54: the certificate needs no shared storage", func(w *testEnv) {
		flux := w.create("local", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2, Template: &v1alpha1.PodTemplate{SchedulerName: byHand}})
		for i, pod := range w.all(flux) {
			w.bind(pod, i)
			for _, volume := range pod.Spec.Volumes {
				isOwn := volume.EmptyDir != nil || volume.ConfigMap != nil || volume.Secret != nil
				Expect(isOwn).To(BeTrue(), "%s", volume.Name)
			}
		}
		var claims corev1.PersistentVolumeClaimList
		Expect(env.Client.List(w.ctx, &claims, client.InNamespace(w.namespace))).To(Succeed())
		Expect(claims.Items).To(BeEmpty())
		w.complete(flux)
	})
	spec("#187: workflow engines can wait for the end", func(w *testEnv) {
		good := w.create("good", v1alpha1.FluxSpec{Command: sh("exit 0")})
		bad := w.create("bad", v1alpha1.FluxSpec{Command: sh("exit 3")})
		w.begin(good)
		w.endLeader(good, 0, "")
		Expect(w.kubectl("wait", "--for=condition=Complete", "flux/good", "--timeout=90s")).To(ContainSubstring("condition met"))
		w.begin(bad)
		w.endLeader(bad, 3, "")
		Expect(w.kubectl("wait", "--for=condition=Failed", "flux/bad", "--timeout=90s")).To(ContainSubstring("condition met"))
	})
	spec("#40: ranks have names that the cluster resolves, up to its limit, and no entries of /etc/hosts", func(w *testEnv) {
		name := strings.Repeat("n", 56) // with -9999-2 it has the 63 characters that a hostname may have
		flux := w.create(name, v1alpha1.FluxSpec{Command: sh(`echo "host: $(cat /etc/hostname)"`), Size: 3})
		for i, pod := range w.all(flux) {
			Expect(pod.Spec.Hostname).To(Equal(fmt.Sprintf("%s-1-%d", name, i)))
			Expect(pod.Spec.Subdomain).To(Equal(name))
			Expect(pod.Spec.HostAliases).To(BeEmpty())
		}
		w.complete(flux)
		if env.Cluster.RunsContainers() {
			Expect(w.output(flux, "host: ")).To(Equal([]string{name + "-1-0", name + "-1-1", name + "-1-2"}))
		}
	})
})

// startsInOrder is a spec about ranks that start one after the other: each one is bound to a node when the previous one
// runs.
func startsInOrder(what string, order ...int) {
	spec("#35, #16: start-up does not depend on order: "+what, func(w *testEnv) {
		flux := w.create("ordered", v1alpha1.FluxSpec{
			Command: sh("exit 0"), Size: int32(len(order)), Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		ranks := w.all(flux)
		for i, number := range order {
			pod := ranks[number]
			w.bind(pod, i)
			if i < len(order)-1 {
				w.simulate(pod, started)
				until(w, pod, func(g Gomega, pod *corev1.Pod) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning)) })
			}
		}
		w.complete(flux)
	})
}
