package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// expectReadyRanks reads the field in the same way as kubectl does for its column: a field that is not stored is shown
// as empty.
func (b *setupTestEnv) expectReadyRanks(kind string, want int64) {
	b.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	b.Expect(b.client.Get(b.ctx, b.key("bees"), object)).To(Succeed())
	got, found, err := unstructured.NestedInt64(object.Object, "status", "readyRanks")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(found).To(BeTrue(), "the first status has a number")
	b.Expect(got).To(Equal(want))
}

func TestReadyRanksAreShownFromTheFirstStatusOn(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.reconcile()
	b.expectReadyRanks("FluxSetup", 0)
	b.running()
	b.expectReadyRanks("FluxSetup", 2)

	flux := fetch[v1alpha1.Flux](b)
	before := flux.DeepCopy()
	flux.Status = fluxStatus(flux, fluxObservation{now: b.clock.Now(), setup: b.setup()})
	flux.Status.ReadyRanks = 0
	b.Expect(writeStatus(b.ctx, b.client, before, flux, fluxFieldOwner)).To(Succeed())
	b.Expect(conditionOf(fetch[v1alpha1.Flux](b).Status.Conditions, v1alpha1.ConditionRunning).Status).To(Equal(metav1.ConditionTrue))
	b.expectReadyRanks("Flux", 0)
}
