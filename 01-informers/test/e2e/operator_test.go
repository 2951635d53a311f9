package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// budget is the number of writes for a Foo of one replica until it is Ready: the Deployment, the status before and after its pod
// is available, one Event.
const budget = 4

var _ = Describe("The operator, in a cluster,", func() {
	It("writes at most four times from a Foo's creation until it is Ready, and not in steady state or on a restart", Serial, func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		foo := create(ctx, namespace, 1)
		expectAvailable(ctx, foo)
		// The Event is the last write.
		Eventually(ctx, env.WritesIn).WithArguments(namespace).WithTimeout(expect.Soon).
			Should(ContainElement(HaveField("ObjectRef.Resource", "events")))
		settled := env.WritesIn(ctx, namespace)
		Expect(len(settled)).To(BeNumerically("<=", budget), "%s", audit.Describe(settled))
		fmt.Printf("==> %s: %d writes from creation to Ready\n", *implementation, len(settled))

		Expect(env.Operator.Restart(ctx)).To(Succeed())
		Consistently(ctx, env.WritesIn).WithArguments(namespace).WithTimeout(expect.SteadyState).WithPolling(time.Second).
			Should(HaveLen(len(settled)))
	})

	It("serves a namespace that enforces the restricted Pod Security level", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, e2e.Restricted)
		foo := create(ctx, namespace, 1)
		expectAvailable(ctx, foo)
		// The level is enforced.
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unrestricted"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foo", Image: env.Images["foo"]}}},
		}
		expect.Rejected(env.Client.Create(ctx, pod), "violates PodSecurity \"restricted")
	})
})

// readyOf returns the condition Ready, or an empty one.
func readyOf(foo *v1alpha1.Foo) metav1.Condition {
	if found := apimeta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady); found != nil {
		return *found
	}
	return metav1.Condition{}
}
