package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

func cpuAndMemory(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// A LimitRange, or a quota, of a namespace asks each container for resources, also those that the operator adds.
func TestANamespaceWithLimitsAdmitsThePods(t *testing.T) {
	t.Parallel()
	limitRange := corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Min: cpuAndMemory("50m", "32Mi"),
		Default: cpuAndMemory("200m", "64Mi"), DefaultRequest: cpuAndMemory("50m", "32Mi"),
	}}}
	quota := corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("1Gi")}}
	for name, c := range map[string]struct {
		limit    client.Object
		goop     func(*v1alpha1.GoopSpec)
		rejected corev1.ResourceRequirements
	}{
		"a LimitRange with defaults": {&corev1.LimitRange{Spec: limitRange}, func(*v1alpha1.GoopSpec) {},
			corev1.ResourceRequirements{Requests: cpuAndMemory("1m", "8Mi")}},
		"a LimitRange, and resources of the user's": {&corev1.LimitRange{Spec: limitRange}, func(s *v1alpha1.GoopSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: cpuAndMemory("100m", "32Mi"), Limits: cpuAndMemory("100m", "32Mi")}
		}, corev1.ResourceRequirements{Requests: cpuAndMemory("1m", "8Mi")}},
		"a quota for limits": {&corev1.ResourceQuota{Spec: quota}, func(s *v1alpha1.GoopSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: cpuAndMemory("100m", "32Mi")}
		}, corev1.ResourceRequirements{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(c.goop, cleanup)
			template := f.daemonSets()["job-0"].Spec.Template.Spec
			c.limit.SetName("limit")
			c.limit.SetNamespace(f.namespace)
			f.Expect(f.client.Create(f.ctx, c.limit)).To(Succeed())
			if created, isQuota := c.limit.(*corev1.ResourceQuota); isQuota {
				// The part of Kubernetes' quota controller.
				created.Status = corev1.ResourceQuotaStatus{Hard: quota.Hard, Used: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("0")}}
				f.Expect(f.client.Status().Update(f.ctx, created)).To(Succeed())
			}
			// Admission learns of the limit a moment later.
			other := template.DeepCopy()
			other.Containers[0].Resources = c.rejected
			f.Eventually(func() error { return f.tryPod(*other) }, "30s").Should(MatchError(Or(ContainSubstring("minimum"), ContainSubstring("must specify limits.memory"))))
			f.Expect(f.tryPod(template)).To(Succeed())
		})
	}
}

// tryPod asks the API server whether it would create such a pod.
func (f *goopTestEnv) tryPod(spec corev1.PodSpec) error {
	return f.client.Create(f.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: f.namespace}, Spec: spec}, client.DryRunAll)
}
