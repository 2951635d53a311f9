package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

// Another client creates the ConfigMap or the Secret first, waits for the Job, and makes it the owner. Neither object
// is used: the ConfigMap would define the command, and the client would know the certificate in the Secret.
func TestFilesThatTheOperatorHasNotMadeAreNotUsed(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*setupTestEnv) client.Object{
		"ConfigMap": func(b *setupTestEnv) client.Object {
			files := clusterOf(b.setup()).Files()
			files[broker.EntrypointFile] = "echo theirs"
			return &corev1.ConfigMap{Data: files, Immutable: new(true)}
		},
		"ConfigMap with one file more": func(b *setupTestEnv) client.Object {
			files := clusterOf(b.setup()).Files()
			files["more.toml"] = "theirs"
			return &corev1.ConfigMap{Data: files, Immutable: new(true)}
		},
		"ConfigMap that is not immutable": func(b *setupTestEnv) client.Object {
			return &corev1.ConfigMap{Data: clusterOf(b.setup()).Files()}
		},
		"Secret": func(*setupTestEnv) client.Object {
			return &corev1.Secret{Data: map[string][]byte{broker.CertificateFile: []byte("theirs")}, Immutable: new(true)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			forged := forge(b)
			forged.SetName("bees-1")
			forged.SetNamespace(b.namespace)
			b.Expect(b.client.Create(b.ctx, forged)).To(Succeed())
			_, _ = b.try()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			forged.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(b.job(), jobKind)})
			b.Expect(b.client.Update(b.ctx, forged)).To(Succeed())

			_, _ = b.try()
			message := b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			b.Expect(message).To(ContainSubstring("bees-1 exists, and its content is not the operator's: it is left unchanged"))
			b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
			b.Expect(b.setup().Spec.Launch.JobUID).To(BeEmpty())

			b.Expect(b.client.Delete(b.ctx, forged)).To(Succeed())
			b.clock.Step(time.Second)
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
			b.Expect(broker.HashOf(b.configMap().Data)).To(Equal(clusterOf(b.setup()).Hash()))
			b.Expect(hasHash(b.job(), b.secret().Data[broker.CertificateFile])).To(BeTrue())
		})
	}
}

// The cache still has the operator's own ConfigMap after another one has replaced it.
func TestConfigMapIsReadPastTheCacheBeforeTheStart(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errCrash
		},
	}))
	_, err := b.try()
	b.Expect(err).To(MatchError(errCrash))
	behind := stale[corev1.ConfigMap](b, "bees-1")
	files := b.configMap()
	b.Expect(b.client.Delete(b.ctx, files)).To(Succeed())
	forged := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "bees-1", Namespace: b.namespace, OwnerReferences: files.OwnerReferences},
		Data:       map[string]string{broker.EntrypointFile: "echo theirs"},
	}
	b.Expect(b.client.Create(b.ctx, forged)).To(Succeed())
	b.reconciler = b.newReconciler(behind)
	_, _ = b.try()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
}

// The operator crashes between the creation of the Job and of its Secret. After a restart it derives another
// certificate, while the Secret of the first one may still arrive late.
func TestSecretOfAnEarlierOperatorIsUsed(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	setup := b.setup()
	first, err := b.reconciler.certificateOf(setup)
	b.Expect(err).NotTo(HaveOccurred())
	job := desiredJob(setup)
	b.Expect(b.client.Create(b.ctx, job)).To(Succeed())
	b.Expect(b.reconciler.recordHash(b.ctx, job, first)).To(Succeed())
	b.forget()
	second, err := b.reconciler.certificateOf(setup)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(second).NotTo(Equal(first))
	b.Expect(b.reconciler.recordHash(b.ctx, job, second)).To(Succeed())
	b.Expect(b.client.Create(b.ctx, desiredSecret(setup, job, first))).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(hasHash(b.job(), second)).To(BeTrue())
	b.Expect(b.secret().Data).To(HaveKeyWithValue(broker.CertificateFile, first))
}
