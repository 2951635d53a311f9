package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

const startupTimeout = defaultStartupTimeout * time.Second

// foreigners are objects of the name that are not ours. Nothing in them is in conflict with what ours would be,
// so that a server-side apply would add to them.
func foreigners(b *bees) map[string]client.Object {
	meta := metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}
	return map[string]client.Object{
		"Secret":    &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"theirs": "x"}},
		"ConfigMap": &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"theirs": "x"}},
		"Service":   &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		"Job":       &batchv1.Job{ObjectMeta: meta, Spec: desiredJobOf(b).Spec},
	}
}

func TestForeignObjectIsANameConflictAndUntouched(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(1))
			foreign := foreigners(b)[kind]
			b.Expect(b.client.Create(b.ctx, foreign)).To(Succeed())

			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			message := b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			b.Expect(message).To(Equal(kind + " bees exists and does not belong to this FluxSetup: it is left as it is"))
			b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
			if kind == "Secret" {
				b.Expect(result.RequeueAfter).To(Equal(refusalRetry), "no event tells that it is gone")
			} else {
				b.Expect(result.RequeueAfter).To(Equal(startupTimeout), "an event tells if it is gone before")
			}
			if job := b.job(); job != nil {
				b.Expect(job.UID).To(Equal(foreign.GetUID()), "no Job is made that could not run")
			}

			live := foreign.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, b.key("bees"), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(foreign.GetResourceVersion()), "not a field of it changed")

			b.Expect(b.client.Delete(b.ctx, foreign, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			b.pass()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			b.Expect(metav1.IsControlledBy(b.job(), b.setup())).To(BeTrue())
		})
	}
}

func TestNameConflictThatLastsIsAFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(1))
			foreign := foreigners(b)[kind]
			b.Expect(b.client.Create(b.ctx, foreign)).To(Succeed())
			b.pass()
			b.clock.Step(startupTimeout - time.Second)
			setup := b.pass()
			b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
			b.clock.Step(time.Second)
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(result.RequeueAfter).To(BeZero())
			message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
			b.Expect(message).To(HavePrefix("the quorum was not reached within 300 s: " + kind + " bees exists"))

			live := foreign.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, b.key("bees"), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(foreign.GetResourceVersion()), "not a field of it changed")
		})
	}
}

// A foreign object came into being after the cache said "absent". The next pass, which sees it, reports it.
func TestForeignObjectIsNotSeizedInARace(t *testing.T) {
	t.Parallel()
	for kind, behind := range map[string]func(*bees) client.Client{
		"ConfigMap": stale[corev1.ConfigMap], "Service": stale[corev1.Service], "Job": stale[batchv1.Job],
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(1))
			b.reconciler = b.newReconciler(behind(b))
			foreign := foreigners(b)[kind]
			b.Expect(b.client.Create(b.ctx, foreign)).To(Succeed())
			_, _ = b.try()
			live := foreign.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, b.key("bees"), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(foreign.GetResourceVersion()), "not a field of it changed")
			b.forget()
			b.pass()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		})
	}
}

// The cache says that the Service is ours, and by the time of the apply the name is a stranger's.
func TestForcedApplyDoesNotFallOnAnotherService(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.pass()
	service := fetch[corev1.Service](b)
	service.Spec.PublishNotReadyAddresses = false
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	behind := stale[corev1.Service](b)
	b.Expect(b.client.Delete(b.ctx, service)).To(Succeed())
	foreign := foreigners(b)["Service"]
	b.Expect(b.client.Create(b.ctx, foreign)).To(Succeed())

	b.reconciler = b.newReconciler(behind)
	_, _ = b.try()
	b.Expect(fetch[corev1.Service](b)).To(Equal(foreign), "not a field of it changed")
}

func TestServiceIsPutRight(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.pass()
	service := fetch[corev1.Service](b)
	ours := service.DeepCopy()
	service.Spec.Selector = map[string]string{"wrong": "pods"}
	service.Spec.PublishNotReadyAddresses = false
	service.Labels["another"] = "label"
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	b.pass()
	service = fetch[corev1.Service](b)
	b.Expect(service.Spec).To(Equal(ours.Spec))
	b.Expect(service.Labels).To(HaveKey("another"), "what other writers add is theirs")
	version := service.ResourceVersion
	b.pass()
	b.Expect(fetch[corev1.Service](b).ResourceVersion).To(Equal(version))

	// What was deleted by hand is made again.
	b.Expect(b.client.Delete(b.ctx, service)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.ConfigMap](b))).To(Succeed())
	b.pass()
	b.Expect(fetch[corev1.Service](b).Spec.Selector).To(Equal(ours.Spec.Selector))
	b.Expect(fetch[corev1.ConfigMap](b)).NotTo(BeNil())
}

// A FluxSetup that a Flux of its name does not own is not acted on.
func TestNotOwned(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]func(*v1alpha1.Flux, *metav1.OwnerReference) []metav1.OwnerReference{
		"made by hand": func(*v1alpha1.Flux, *metav1.OwnerReference) []metav1.OwnerReference { return nil },
		"the uid is another's": func(_ *v1alpha1.Flux, owner *metav1.OwnerReference) []metav1.OwnerReference {
			owner.UID = "11111111-2222-3333-4444-555555555555"
			return []metav1.OwnerReference{*owner}
		},
		"the Flux has another name": func(_ *v1alpha1.Flux, owner *metav1.OwnerReference) []metav1.OwnerReference {
			owner.Name = "wasps"
			return []metav1.OwnerReference{*owner}
		},
		"the owner is of another kind": func(_ *v1alpha1.Flux, owner *metav1.OwnerReference) []metav1.OwnerReference {
			owner.Kind, owner.APIVersion = "ConfigMap", "v1"
			return []metav1.OwnerReference{*owner}
		},
		"the Flux is not the controller": func(_ *v1alpha1.Flux, owner *metav1.OwnerReference) []metav1.OwnerReference {
			owner.Controller = new(false)
			return []metav1.OwnerReference{*owner}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bees{world: newWorld(t), t: t}
			b.reconciler = b.newReconciler(b.client)
			b.flux = b.makeFlux(fluxOf(1))
			setup := firstSetup(b.flux)
			setup.OwnerReferences = own(b.flux, &setup.OwnerReferences[0])
			b.Expect(b.client.Create(b.ctx, setup)).To(Succeed())

			b.pass()
			for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured, v1alpha1.ConditionQuorumReached} {
				b.expect(kind, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
			}
			b.Expect(b.setup().Spec.Launch).To(BeNil())
			b.expectNothing()
			version := b.setup().ResourceVersion
			b.Expect(b.pass().ResourceVersion).To(Equal(version))
		})
	}
}

// expectNothing asserts that there is nothing of the FluxSetup's, nor of anybody else's, of its name.
func (b *bees) expectNothing() {
	b.t.Helper()
	b.Expect(b.job()).To(BeNil())
	b.Expect(fetch[corev1.Secret](b)).To(BeNil())
	b.Expect(fetch[corev1.ConfigMap](b)).To(BeNil())
	b.Expect(fetch[corev1.Service](b)).To(BeNil())
	b.Expect(b.pods()).To(BeEmpty())
}
