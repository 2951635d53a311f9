package controller

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

const startupTimeout = defaultStartupTimeout * time.Second

// notOwnedObjects are objects that have the names of dependents and are not owned. Their fields do not conflict with
// ours, so a server-side apply would succeed.
func notOwnedObjects(b *setupTestEnv) map[string]client.Object {
	meta := metav1.ObjectMeta{Name: "bees-1", Namespace: b.namespace}
	service := metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}
	return map[string]client.Object{
		"Secret":    &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"theirs": "x"}},
		"ConfigMap": &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"theirs": "x"}},
		"Service":   &corev1.Service{ObjectMeta: service, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		"Job":       &batchv1.Job{ObjectMeta: meta, Spec: desiredJob(b.setup()).Spec},
	}
}

func TestObjectNotOwnedIsANameConflictAndUntouched(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			other := notOwnedObjects(b)[kind]
			b.Expect(b.client.Create(b.ctx, other)).To(Succeed())

			result, err := b.try()
			message := b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			b.Expect(message).To(Equal(kind + " " + other.GetName() + " already exists and has a different owner, or none: it is left unchanged"))
			b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
			if kind == "Secret" {
				b.Expect(err).To(MatchError(errNotWatched), "it is retried, because no event reports its deletion")
			} else {
				b.Expect(err).NotTo(HaveOccurred())
				b.Expect(result.RequeueAfter).To(Equal(startupTimeout), "an event reports its deletion")
			}
			if job := b.job(); job != nil {
				b.Expect(job.Spec.Suspend).To(HaveValue(BeTrue()), "a Job without its dependents is not started")
			}
			b.Expect(b.setup().Spec.Launch.JobUID).To(BeEmpty())

			live := other.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(other), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(other.GetResourceVersion()), "it is unchanged")

			b.Expect(b.client.Delete(b.ctx, other, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			b.clock.Step(time.Second)
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			b.Expect(metav1.IsControlledBy(b.job(), b.setup())).To(BeTrue())
		})
	}
}

func TestPersistentNameConflictIsAFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			other := notOwnedObjects(b)[kind]
			b.Expect(b.client.Create(b.ctx, other)).To(Succeed())
			_, _ = b.try()
			b.clock.Step(startupTimeout - time.Second)
			_, _ = b.try()
			b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
			b.clock.Step(time.Second)
			_, _ = b.try()
			message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
			b.Expect(message).To(HavePrefix("the quorum was not reached within 300 s: " + kind + " " + other.GetName() + " already exists"))
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(result.RequeueAfter).To(BeZero())

			live := other.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(other), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(other.GetResourceVersion()), "it is unchanged")
		})
	}
}

// An object that is not owned was created after the cache was read. The next reconciliation reports it.
func TestObjectNotOwnedIsNotAdoptedInARace(t *testing.T) {
	t.Parallel()
	for kind, behind := range map[string]func(*setupTestEnv) client.Client{
		"ConfigMap": func(b *setupTestEnv) client.Client { return stale[corev1.ConfigMap](b, "bees-1") },
		"Service":   func(b *setupTestEnv) client.Client { return stale[corev1.Service](b, "bees") },
		"Job":       staleJobs,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.reconciler = b.newReconciler(behind(b))
			other := notOwnedObjects(b)[kind]
			b.Expect(b.client.Create(b.ctx, other)).To(Succeed())
			_, _ = b.try()
			live := other.DeepCopyObject().(client.Object)
			b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(other), live)).To(Succeed())
			b.Expect(live.GetResourceVersion()).To(Equal(other.GetResourceVersion()), "it is unchanged")
			b.forget()
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		})
	}
}

// According to the cache the Service is ours. At the time of the apply another object has the name.
func TestForcedApplyIsBoundToTheUID(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	service := fetch[corev1.Service](b)
	service.Spec.PublishNotReadyAddresses = false
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	behind := stale[corev1.Service](b, "bees")
	b.Expect(b.client.Delete(b.ctx, service)).To(Succeed())
	other := notOwnedObjects(b)["Service"]
	b.Expect(b.client.Create(b.ctx, other)).To(Succeed())

	b.reconciler = b.newReconciler(behind)
	_, _ = b.try()
	b.Expect(fetch[corev1.Service](b)).To(Equal(other), "it is unchanged")
}

func TestDriftIsCorrected(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	service := fetch[corev1.Service](b)
	ours := service.DeepCopy()
	service.Spec.Selector = map[string]string{"wrong": "pods"}
	service.Spec.PublishNotReadyAddresses = false
	service.Labels["another"] = "label"
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	b.reconcile()
	service = fetch[corev1.Service](b)
	b.Expect(service.Spec).To(Equal(ours.Spec))
	b.Expect(service.Labels).To(HaveKey("another"), "what other writers add is theirs")
	version := service.ResourceVersion
	b.reconcile()
	b.Expect(fetch[corev1.Service](b).ResourceVersion).To(Equal(version))

	// A dependent that another writer has deleted is created again.
	files := b.configMap()
	b.Expect(b.client.Delete(b.ctx, service)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, files)).To(Succeed())
	b.reconcile()
	b.Expect(fetch[corev1.Service](b).Spec.Selector).To(Equal(ours.Spec.Selector))
	b.Expect(b.configMap().Data).To(Equal(files.Data))
	b.Expect(metav1.IsControlledBy(b.configMap(), b.job())).To(BeTrue())
}

// Nothing is done for a FluxSetup that is not owned by a Flux of its name.
func TestNotOwned(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]func(*v1alpha1.Flux, *metav1.OwnerReference) []metav1.OwnerReference{
		"created by a user": func(*v1alpha1.Flux, *metav1.OwnerReference) []metav1.OwnerReference { return nil },
		"the uid is of another Flux": func(_ *v1alpha1.Flux, owner *metav1.OwnerReference) []metav1.OwnerReference {
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
			b := &setupTestEnv{testEnv: newTestEnv(t), t: t}
			b.reconciler = b.newReconciler(b.client)
			b.flux = b.makeFlux(fluxOf(1))
			setup := firstSetup(b.flux)
			setup.OwnerReferences = own(b.flux, &setup.OwnerReferences[0])
			b.Expect(b.client.Create(b.ctx, setup)).To(Succeed())

			b.reconcile()
			for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured, v1alpha1.ConditionQuorumReached} {
				b.expect(kind, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
			}
			b.Expect(b.setup().Spec.Launch).To(BeNil())
			b.expectNothing()
			version := b.setup().ResourceVersion
			b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
		})
	}
}

// expectNothing asserts that the namespace has no dependents of a FluxSetup.
func (b *setupTestEnv) expectNothing() {
	b.t.Helper()
	b.Expect(b.dependents()).To(BeEmpty())
	b.Expect(b.pods()).To(BeEmpty())
}

// dependents are the objects of the namespace of the kinds that a FluxSetup creates, except pods.
func (b *setupTestEnv) dependents() []string {
	b.t.Helper()
	var found []string
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}} {
		b.Expect(b.client.List(b.ctx, list, client.InNamespace(b.namespace))).To(Succeed())
		b.Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			found = append(found, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
			return nil
		})).To(Succeed())
	}
	return found
}
