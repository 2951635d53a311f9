package e2e

import (
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/expect"
)

// nowhere is a registry to which connections fail at once: the nodes ask themselves.
const nowhere = "localhost:1/"

// It takes longest, because the kubelet waits before it pulls again, so it begins first.
var _ = Describe("The seed's question", SpecPriority(1), func() {
	// Q6: is `kind load` needed? Yes, for every image that the nodes cannot pull: what the engine of the machine has
	// built is in the engine, and a node has a store of its own. And it is of use only to a pod that may use what the
	// node has: one whose pull policy is Always, the default for :latest, goes on asking the registry.
	It("TestSeedQuestion_AnImageHasToBeLoaded: a node lacks what the engine has until it is loaded, and may not use it under :latest", Label(e2e.LabelContainers), func(ctx SpecContext) {
		found, err := engine.Find(ctx)
		Expect(err).NotTo(HaveOccurred())
		namespace := env.Namespace(ctx)
		tagged, latest := nowhere+namespace+":v1", nowhere+namespace+":latest"
		for _, ref := range []string{tagged, latest} {
			output, err := exec.CommandContext(ctx, found.Name, "tag", env.Images["lolcow"], ref).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s", output)
			DeferCleanup(func(ctx SpecContext) {
				Expect(exec.CommandContext(ctx, found.Name, "image", "rm", ref).Run()).To(Succeed())
			})
		}

		pod := func(name, image string, policy corev1.PullPolicy) *corev1.Pod {
			GinkgoHelper()
			made := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "lolcow", Image: image, ImagePullPolicy: policy}}},
			}
			Expect(env.Client.Create(ctx, made)).To(Succeed())
			return made
		}
		never := pod("never", tagged, corev1.PullNever)
		byTag, byLatest := pod("tagged", tagged, ""), pod("latest", latest, "")
		Expect(byTag.Spec.Containers[0].ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "the default for a tag")
		Expect(byLatest.Spec.Containers[0].ImagePullPolicy).To(Equal(corev1.PullAlways), "the default for :latest")
		notPulled := BeElementOf("ErrImagePull", "ImagePullBackOff")
		expect.Object(ctx, env.Client, never, func(g Gomega, p *corev1.Pod) { g.Expect(waitsFor(p)).To(Equal("ErrImageNeverPull")) })
		for _, p := range []*corev1.Pod{byTag, byLatest} {
			expect.Object(ctx, env.Client, p, func(g Gomega, p *corev1.Pod) { g.Expect(waitsFor(p)).To(notPulled) })
		}

		loaded, err := env.Cluster.LoadImages(ctx, tagged, latest)
		Expect(err).NotTo(HaveOccurred())
		Expect(loaded).To(BeTrue())
		for _, p := range []*corev1.Pod{never, byTag} {
			expect.Object(ctx, env.Client, p, func(g Gomega, p *corev1.Pod) { g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning)) })
		}
		fresh := pod("latest-again", latest, "")
		expect.Object(ctx, env.Client, fresh, func(g Gomega, p *corev1.Pod) { g.Expect(waitsFor(p)).To(notPulled) })
		use := pod("latest-if-not-present", latest, corev1.PullIfNotPresent)
		expect.Object(ctx, env.Client, use, func(g Gomega, p *corev1.Pod) { g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning)) })
	})
})

// waitsFor is why the container of a pod does not run; empty if it does, or if no status says so yet.
func waitsFor(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			return status.State.Waiting.Reason
		}
	}
	return ""
}
