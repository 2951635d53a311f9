package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// mutate adds an admission policy that changes every DaemonSet of the test's namespace by a CEL expression.
func (f *goopTestEnv) mutate(t *testing.T, expression string) (end func()) {
	t.Helper()
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"daemonsets"}},
	}
	meta := metav1.ObjectMeta{Name: f.namespace}
	all := []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: expression},
			}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: f.namespace}},
	}
	for _, object := range all {
		f.Expect(f.client.Create(f.ctx, object)).To(Succeed())
	}
	end = func() {
		for _, object := range all {
			_ = f.client.Delete(context.WithoutCancel(f.ctx), object)
		}
	}
	t.Cleanup(end)
	return end
}

// A policy sets another affinity on every write. Each patch is a change, and without a back-off its event would trigger the
// next reconciliation at once.
func TestChangeByAdmissionBacksOff(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	user, _ := f.manage(t)
	f.submit(1, workers(1))
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	const affinity = "Object.spec.template.spec.affinity"
	const required = affinity + ".nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	end := f.mutate(t, `[JSONPatch{op: "add", path: "/spec/template/spec/affinity", value: `+affinity+`{nodeAffinity: `+affinity+`.nodeAffinity{
		requiredDuringSchedulingIgnoredDuringExecution: `+required+`{nodeSelectorTerms: [
			`+required+`.nodeSelectorTerms{matchExpressions: [`+required+`.nodeSelectorTerms.matchExpressions{
				key: "example.com/at", operator: "In", values: [oldObject == null ? "" : string(oldObject.metadata.resourceVersion)]}]}]}}}}]`)
	// A policy takes effect a moment after it was created.
	f.Eventually(func(g Gomega) {
		daemonSet := f.daemonSets()["job-0"]
		metav1.SetMetaDataAnnotation(&daemonSet.ObjectMeta, "since", time.Now().String())
		g.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
		g.Expect(roundOf(0, daemonSet).Everywhere).To(BeTrue())
	}, watchTimeout).Should(Succeed())

	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonApplyFailed)
	f.Expect(conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionRunning).Message).To(
		Equal("an admission policy or webhook changes spec.template.spec.affinity of DaemonSet job-0"))
	writes := func() int { return f.writes(t, user)["patch daemonsets/"] }
	// The first retry is after 5 ms, and each further one after twice the time.
	f.Consistently(writes, 4*time.Second, 100*time.Millisecond).Should(BeNumerically("<=", 16))
	t.Logf("%d writes", writes())
	f.Eventually(writes, watchTimeout).Should(BeNumerically(">=", 5), "it is retried")

	end()
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.Expect(f.nodesOf("job-0")).To(Equal([]string{f.node("a")}))
}

// A policy removes the finalizer. The Goop reports that, instead of waiting for an event that does not come.
func TestFinalizerThatAdmissionRemoves(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, isGoop := object.(*v1alpha1.Goop); isGoop {
				return c.Get(ctx, client.ObjectKeyFromObject(object), object)
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	})
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(cleanup)})).To(Succeed())
	f.reconciles(2)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonApplyFailed).Message).To(Equal("an admission policy or webhook changes metadata.finalizers of Goop job"))
	f.Expect(f.daemonSets()).To(BeEmpty(), "no work begins that could not be cleaned up")
}

// A failed write is not retried before its time, whatever triggers a reconciliation. Another spec is tried at once.
func TestFailedTryBacksOff(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.use()
	tries := 0
	f.reconciler.Client = gatedClient{interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if _, isDaemonSet := object.(*appsv1.DaemonSet); !isDaemonSet {
				return c.Create(ctx, object, opts...)
			}
			if tries++; tries%2 == 0 {
				return apierrors.NewInternalError(fmt.Errorf("try %d", tries))
			}
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), object.GetName(), fmt.Errorf("try %d", tries))
		},
	})}
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec()})).To(Succeed())
	for tries == 0 {
		_, _ = f.reconcile()
	}
	for range 5 {
		_, err := f.reconcile()
		f.Expect(err).To(HaveOccurred())
	}
	f.Expect(tries).To(Equal(1))
	f.clock.Step(5 * time.Millisecond)
	for range 5 {
		_, err := f.reconcile()
		f.Expect(err).To(HaveOccurred())
	}
	f.Expect(tries).To(Equal(2))
	goop := f.goop()
	goop.Spec.TTLSecondsAfterFinished = new(int32(1))
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	_, err := f.reconcile()
	f.Expect(err).To(HaveOccurred())
	f.Expect(tries).To(Equal(3))
}

// A write that hangs fails at the end of its time, and the time to the next try counts from then.
func TestTriesArePacedFromTheFailure(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	clock := testclock.NewFakeClock(started)
	r := newRetries(clock, newRateLimiter(), retryable)
	goop, tries := aGoop(), 0
	for range 3 {
		err := r.try(t.Context(), ctrl.Request{}, goop, func(ctx context.Context) error {
			if err := gateError(ctx); err != nil {
				return err
			}
			tries++
			clock.Step(45 * time.Second)
			return context.DeadlineExceeded
		})
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
	}
	g.Expect(tries).To(Equal(1))
}

// A quota allows one DaemonSet and not the other, and the retry is not due yet. The results of the first one's workers
// are recorded nevertheless, because their pods may no longer exist later.
func TestFailedTryDoesNotKeepResultsFromTheRecord(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	creations := 0
	f.reconciler.Client = gatedClient{interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if object.GetName() != "job-1" {
				return c.Create(ctx, object, opts...)
			}
			creations++
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), object.GetName(), errors.New("exceeded quota"))
		},
	})}
	f.create(workers(3))
	f.runs("a/0", "b/0")
	for range 15 {
		_, err := f.reconcile()
		f.Expect(isRejected(err)).To(BeTrue(), "%v", err)
		f.clock.Step(time.Minute)
	}
	_, err := f.reconcile()
	f.Expect(isRejected(err)).To(BeTrue(), "%v", err)
	tried := creations

	f.kubelet("a/0", hasFinished(3, "an output"))
	f.clock.Step(5 * time.Second)
	for range 3 {
		f.clock.Step(writeInterval)
		_, err := f.reconcile()
		f.Expect(err == nil || isRejected(err)).To(BeTrue(), "%v", err)
	}
	f.Expect(creations).To(Equal(tried), "the next try is not due")
	f.Expect(f.record().Failed).To(Equal(int32(1)))
	f.Expect(f.goop().Status.Failed).To(Equal(int32(1)))

	// Its node is drained. The affinity keeps the DaemonSet controller from creating another pod.
	f.removePod(f.pod("a/0"))
	_, err = f.reconcile()
	f.Expect(err == nil || isRejected(err)).To(BeTrue(), "%v", err)
	f.settle()
	f.Expect(f.pods["a/0"]).To(Equal(1), "the work ran again")

	f.Expect(creations).To(Equal(tried), "the next try is still not due")
	f.clock.Step(30 * time.Second)
	_, err = f.reconcile()
	f.Expect(isRejected(err)).To(BeTrue(), "%v", err)
	f.Expect(creations).To(Equal(tried + 1))
}
