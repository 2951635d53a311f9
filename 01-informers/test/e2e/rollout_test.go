package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

var _ = Describe("A rollout", func() {
	It("runs the pods, reports when they are deleted and available again, and deletes them with the Foo", Label(e2e.LabelContainers), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, e2e.Restricted)
		foo := create(ctx, namespace, 2)
		expectAvailable(ctx, foo)
		Expect(foo.Status.AvailableReplicas).To(Equal(int32(2)))
		pods := podsIn(ctx, namespace)
		Expect(pods).To(HaveLen(2))
		for _, pod := range pods {
			Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
			status := pod.Status.ContainerStatuses[0]
			Expect(status.State.Running).NotTo(BeNil(), "%s: %+v", pod.Name, status.State)
			Expect(status.RestartCount).To(BeZero())
			Expect(status.Image).To(Equal(env.Images["foo"]))
		}

		// A new pod takes a second or more. First that is reported, and then that it is available.
		watched := watchReady(ctx, foo)
		for _, pod := range pods {
			Expect(env.Client.Delete(ctx, &pod)).To(Succeed())
		}
		Eventually(ctx, watched).WithTimeout(expect.Eventually).Should(Receive(Equal(v1alpha1.ReasonRollingOut)))
		Eventually(ctx, watched).WithTimeout(expect.Eventually).Should(Receive(Equal(v1alpha1.ReasonAvailable)))
		expectAvailable(ctx, foo)

		change(ctx, foo, func(spec *v1alpha1.FooSpec) { spec.DeploymentName, spec.Replicas = "renamed", new(int32(3)) })
		expectAvailable(ctx, foo)
		Expect(foo.Status.AvailableReplicas).To(Equal(int32(3)))
		Eventually(ctx, podsIn).WithArguments(namespace).WithTimeout(expect.Eventually).Should(
			And(HaveLen(3), HaveEach(HaveField("Name", HavePrefix("renamed-")))), "the pods of the old Deployment are deleted")

		Expect(env.Client.Delete(ctx, foo)).To(Succeed())
		Eventually(ctx, podsIn).WithArguments(namespace).WithTimeout(expect.Eventually).Should(BeEmpty())
	})
})

func podsIn(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(env.Client.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// watchReady sends the reason of a Foo's condition Ready whenever it changes from now on.
func watchReady(ctx context.Context, foo *v1alpha1.Foo) <-chan string {
	GinkgoHelper()
	var foos v1alpha1.FooList
	watcher, err := env.Client.Watch(ctx, &foos, client.InNamespace(foo.Namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: foo.ResourceVersion},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watcher.Stop)
	reasons := make(chan string, 100)
	go func() {
		last := readyOf(foo).Reason
		for event := range watcher.ResultChan() {
			if changed, isFoo := event.Object.(*v1alpha1.Foo); isFoo && readyOf(changed).Reason != last {
				last = readyOf(changed).Reason
				reasons <- last
			}
		}
	}()
	return reasons
}
