package raw

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

func TestPassWaitsUntilTheCachesHaveSeenItsLastWrites(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.expectPass("one")
	h.Expect(h.writes).To(Equal(2), "the Deployment and the status")

	again, err := h.pass("one")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(again).To(Equal(staleRetry))
	h.Expect(h.fooIndexer.Add(h.get("one"))).To(Succeed())
	again, err = h.pass("one")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(again).To(Equal(staleRetry), "the cache of Deployments is still behind")
	h.Expect(h.writes).To(Equal(2))

	h.catchUp()
	h.expectPass("one")
	h.Expect(h.writes).To(Equal(2), "all is as it should be")
}

func TestPassOverWhatIsGone(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	f := h.create("one", "web")
	h.expectPass("one")
	h.writes = 0
	h.Expect(h.fooIndexer.Delete(f)).To(Succeed())
	h.expectPass("one")
	h.Expect(h.written.notes).To(BeEmpty())

	f.DeletionTimestamp = new(metav1.Now())
	h.Expect(h.fooIndexer.Add(f)).To(Succeed())
	h.expectPass("one")
	h.Expect(h.writes).To(BeZero(), "the garbage collector is at work")
}

func TestForeignDeploymentThatTheCacheHasNotSeenIsNotSeized(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	before := h.foreign("web")
	h.expectPass("one")
	h.expectReason("one", v1alpha1.ReasonNameConflict)
	h.Expect(h.deployment("web")).To(Equal(before))
}

// Both have the same field owner, so that the API server sees no conflict of fields.
func TestAnotherFoosDeploymentThatTheCacheHasNotSeenIsNotSeized(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.create("two", "web")
	h.expectPass("one")
	before := h.deployment("web")
	h.expectPass("two")
	h.expectReason("two", v1alpha1.ReasonNameConflict)
	h.Expect(h.deployment("web")).To(Equal(before))
	h.Expect(h.attempts.Of(h.get("two"))).To(Equal(foo.Verdict{}), "it is not one of the tries")
}

// drifted has a Foo whose Deployment is in the cache with another number of replicas than the spec's.
func drifted(t *testing.T) *byHand {
	t.Helper()
	h := newByHand(t)
	h.create("one", "web")
	h.expectPass("one")
	h.catchUp()
	_, err := h.foos.Foos(h.namespace).Update(t.Context(), func() *v1alpha1.Foo {
		f := h.get("one")
		f.Spec.Replicas = new(int32(2))
		return f
	}(), metav1.UpdateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	h.catchUp()
	return h
}

func TestForceFallsOnNoOtherObjectOfTheName(t *testing.T) {
	t.Parallel()
	h := drifted(t)
	h.Expect(h.deployments.Deployments(h.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	before := h.foreign("web")
	_, err := h.pass("one")
	h.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "the uid is another: %v", err)
	h.Expect(h.deployment("web")).To(Equal(before))
	h.expectReason("one", v1alpha1.ReasonRollingOut)

	h.catchUp()
	h.expectPass("one")
	h.expectReason("one", v1alpha1.ReasonNameConflict)
}

func TestForceMakesNothingThatHasGone(t *testing.T) {
	t.Parallel()
	h := drifted(t)
	h.Expect(h.deployments.Deployments(h.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	_, err := h.pass("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the uid is that of no object: %v", err)

	h.catchUp()
	h.expectPass("one")
	h.Expect(*h.deployment("web").Spec.Replicas).To(Equal(int32(2)))
}

func TestOnlyOurOwnOfTheOldNameIsDeleted(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "old")
	h.expectPass("one")
	h.catchUp()
	h.Expect(h.deployments.Deployments(h.namespace).Delete(t.Context(), "old", metav1.DeleteOptions{})).To(Succeed())
	before := h.foreign("old")
	f := h.get("one")
	f.Spec.DeploymentName = "new"
	_, err := h.foos.Foos(h.namespace).Update(t.Context(), f, metav1.UpdateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.fooIndexer.Add(h.get("one"))).To(Succeed())

	_, err = h.pass("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the uid is another: %v", err)
	h.Expect(h.deployment("old")).To(Equal(before))
	h.Expect(h.deployment("new").OwnerReferences).To(HaveLen(1), "it was applied before")
	h.catchUp()
	h.expectPass("one")
	h.Expect(h.deployment("old")).To(Equal(before))
}

func TestTransientErrorIsReportedAndReturned(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		h := newByHand(t)
		h.create("one", "web")
		h.answer = code
		_, err := h.pass("one")
		h.Expect(err).To(HaveOccurred(), "so that the queue tries again")
		h.Expect(h.writes).To(Equal(2), "the apply, and the status")
		h.expectReason("one", v1alpha1.ReasonAPIError)
		h.catchUp()
		_, err = h.pass("one")
		h.Expect(err).To(HaveOccurred())
		h.Expect(h.writes).To(Equal(3), "the apply, and no other status")

		h.answer = 0
		h.expectPass("one")
		h.expectReason("one", v1alpha1.ReasonRollingOut)
	}
}

// The lock: a status that is made from an older Foo does not fall on a newer one.
func TestStatusOfAnOlderFooIsNotWritten(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	f := h.get("one")
	f.Labels = map[string]string{"changed": "since"}
	_, err := h.foos.Foos(h.namespace).Update(t.Context(), f, metav1.UpdateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	_, err = h.pass("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	h.Expect(h.get("one").Status.Conditions).To(BeEmpty())
}
