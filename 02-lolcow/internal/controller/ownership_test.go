package controller

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// Another writer changes the arguments, and then the greeting is removed from the spec: when the operator applied the
// arguments only where there was a greeting, it owned them no longer, and the other writer's stayed with Ready=True.
func TestArgumentsAreOwnedWithoutAGreeting(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	deployment := f.deployment()
	deployment.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
	f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
	f.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "" })
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}))

	deployment = f.deployment()
	deployment.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
	f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
	f.reconcile("cow")
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}), "and repaired as any other drift")
}

// Every field of the spec is owned, whatever its value: the fields that are applied for an empty spec are those that are
// applied for a full one. The one exception is the node port: without one in the spec the API server chooses.
func TestEveryStateOfTheSpecOwnsTheSameFields(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	empty := f.create("empty", v1alpha1.LolcowSpec{})
	full := f.create("full", v1alpha1.LolcowSpec{Greeting: "Moo", Replicas: new(int32(3)), Image: "example.com/other:1"})
	fields := func(name string) (deployment, service string) {
		var d appsv1.Deployment
		var s corev1.Service
		f.Expect(f.client.Get(f.ctx, f.key(name), &d)).To(Succeed())
		f.Expect(f.client.Get(f.ctx, f.key(name), &s)).To(Succeed())
		return ownedFields(f, d.ManagedFields), ownedFields(f, s.ManagedFields)
	}
	emptyDeployment, emptyService := fields(empty.Name)
	fullDeployment, fullService := fields(full.Name)
	// The uid of the owner is a key of the list of owners.
	f.Expect(withoutUID(emptyDeployment, empty)).To(MatchJSON(withoutUID(fullDeployment, full)))
	f.Expect(withoutUID(emptyService, empty)).To(MatchJSON(withoutUID(fullService, full)))
}

// Another writer's port must not be taken for ours because it comes first.
func TestStatusHasThePortOfOurName(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{})
	service := f.service()
	ours := service.Spec.Ports[0].NodePort
	service.Spec.Ports = append([]corev1.ServicePort{{Name: "metrics", Port: 9000}}, service.Spec.Ports...)
	f.Expect(f.client.Update(f.ctx, service)).To(Succeed())
	f.Expect(f.service().Spec.Ports[0].Name).To(Equal("metrics"))
	f.reconcile("cow")
	f.Expect(f.get("cow").Status.Port).To(Equal(ours))
}

// Two environment variables of one name: the API server only warns, and what the operator owns cannot be extracted.
func TestObjectThatCannotBeExtractedIsApplied(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	deployment := f.deployment()
	twice := corev1.EnvVar{Name: "HERD", Value: "1"}
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{twice, twice}
	f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
	lolcow := f.get("cow")
	lolcow.Spec.Greeting = "Baa"
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.reconcile("cow")
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Baa"}))
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// The Deployment says why there is no pod, and no pod does.
func TestDeploymentsConditionsAreReported(t *testing.T) {
	t.Parallel()
	for reason, condition := range map[string]appsv1.DeploymentCondition{
		v1alpha1.ReasonPodsNotCreated:           {Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: pods"},
		v1alpha1.ReasonProgressDeadlineExceeded: {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "has timed out progressing"},
		v1alpha1.ReasonRollingOut:               {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: "is progressing"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			deployment := deploymentWith(2, appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{condition}})
			ready := readyCondition(observation{deployment: deployment})
			g.Expect(ready.Reason).To(Equal(reason))
			if reason != v1alpha1.ReasonRollingOut {
				g.Expect(ready.Message).To(Equal(condition.Message))
			}
			deployment.Generation = 3
			g.Expect(readyCondition(observation{deployment: deployment}).Reason).To(Equal(v1alpha1.ReasonRollingOut), "it is about an older generation")
		})
	}
}

// ownedFields are the fields that the operator owns of an object, as JSON.
func ownedFields(f *testEnv, entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager == fieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply {
			return string(entry.FieldsV1.GetRawBytes())
		}
	}
	f.Expect(entries).To(BeEmpty(), "no entry of %s", fieldOwner)
	return ""
}

func withoutUID(fields string, owner *v1alpha1.Lolcow) string {
	return strings.ReplaceAll(fields, string(owner.UID), "UID")
}

// In a namespace that is being deleted nothing can be created. That is neither a failure nor an error.
func TestNamespaceBeingDeleted(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})).To(Succeed())
	f.Expect(f.reconcile("cow")).To(BeZero())
	f.Expect(f.get("cow").Status.Conditions).To(BeEmpty(), "what it would be reported in is deleted too")
	f.Expect(f.recorded()).To(BeEmpty())
}
