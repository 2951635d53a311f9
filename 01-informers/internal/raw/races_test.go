package raw

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

func TestReconcileWaitsUntilTheCachesHaveItsLastWrites(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.expectReconciled("one")
	h.Expect(h.writes).To(Equal(2), "the Deployment and the status")

	requeueAfter, err := h.reconcileFoo("one")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(requeueAfter).To(Equal(staleRetry))
	h.Expect(h.fooIndexer.Add(h.get("one"))).To(Succeed())
	requeueAfter, err = h.reconcileFoo("one")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(requeueAfter).To(Equal(staleRetry), "the cache of Deployments is still behind")
	h.Expect(h.writes).To(Equal(2))

	h.syncCaches()
	h.expectReconciled("one")
	h.Expect(h.writes).To(Equal(2), "all is as desired")
}

func TestReconcileOfADeletedFoo(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	f := h.create("one", "web")
	h.expectReconciled("one")
	h.writes = 0
	h.Expect(h.fooIndexer.Delete(f)).To(Succeed())
	h.expectReconciled("one")
	h.Expect(h.written.writes).To(BeEmpty())

	f.DeletionTimestamp = new(metav1.Now())
	h.Expect(h.fooIndexer.Add(f)).To(Succeed())
	h.expectReconciled("one")
	h.Expect(h.writes).To(BeZero(), "the garbage collector deletes the Deployment")
}

// expectNameConflict reconciles a Foo whose deploymentName is that of a Deployment which it does not own and the cache lacks.
func (h *byHand) expectNameConflict(name string) {
	requeueAfter, err := h.reconcileFoo(name)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(requeueAfter).To(Equal(foo.UnseenRetry))
	h.expectReason(name, v1alpha1.ReasonNameConflict)
}

func TestDeploymentNotOwnedThatTheCacheLacksIsNotAdopted(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	before := h.createNotOwned("web")
	h.expectNameConflict("one")
	h.Expect(h.deployment("web")).To(Equal(before))

	// The cache may never have it, and then its deletion is no event.
	h.deleteDeployment("web")
	h.syncCaches()
	h.expectReconciled("one")
	h.expectReason("one", v1alpha1.ReasonRollingOut)
}

// Both Foos have the same field owner, so that the API server reports no conflict of fields.
func TestDeploymentOfAnotherFooThatTheCacheLacksIsNotAdopted(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.create("two", "web")
	h.expectReconciled("one")
	before := h.deployment("web")
	h.expectNameConflict("two")
	h.Expect(h.deployment("web")).To(Equal(before))
	h.Expect(h.attempts.Of(h.get("two"))).To(Equal(foo.Retry{}), "it is not one of the tries")
}

// drifted has a Foo whose Deployment is in the cache with another number of replicas than the spec's.
func drifted(t *testing.T) *byHand {
	t.Helper()
	h := newByHand(t)
	h.create("one", "web")
	h.expectReconciled("one")
	h.updateFoo("one", func(f *v1alpha1.Foo) { f.Spec.Replicas = new(int32(2)) })
	h.syncCaches()
	return h
}

func TestForcedApplyChangesNoOtherObjectOfTheName(t *testing.T) {
	t.Parallel()
	h := drifted(t)
	h.deleteDeployment("web")
	before := h.createNotOwned("web")
	_, err := h.reconcileFoo("one")
	h.Expect(err).To(MatchError(foo.ErrStale), "uid and resourceVersion differ")
	h.Expect(h.deployment("web")).To(Equal(before))
	h.expectReason("one", v1alpha1.ReasonRollingOut)

	h.syncCaches()
	h.expectReconciled("one")
	h.expectReason("one", v1alpha1.ReasonNameConflict)
}

func TestForcedApplyDoesNotCreateADeletedDeployment(t *testing.T) {
	t.Parallel()
	h := drifted(t)
	h.deleteDeployment("web")
	_, err := h.reconcileFoo("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "no object has the uid: %v", err)

	h.syncCaches()
	h.expectReconciled("one")
	h.Expect(*h.deployment("web").Spec.Replicas).To(Equal(int32(2)))
}

func TestDeploymentOfTheOldNameIsDeletedOnlyIfOwned(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "old")
	h.expectReconciled("one")
	h.syncCaches()
	h.deleteDeployment("old")
	before := h.createNotOwned("old")
	h.updateFoo("one", func(f *v1alpha1.Foo) { f.Spec.DeploymentName = "new" })
	h.Expect(h.fooIndexer.Add(h.get("one"))).To(Succeed())

	_, err := h.reconcileFoo("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the uid differs: %v", err)
	h.Expect(h.deployment("old")).To(Equal(before))
	h.Expect(h.deployment("new").OwnerReferences).To(HaveLen(1), "it was applied before")
	h.syncCaches()
	h.expectReconciled("one")
	h.Expect(h.deployment("old")).To(Equal(before))
}

// The deploymentName is changed and changed back while the cache still has the Deployment of the first name, which is deleted.
// With a cache that counts as up to date, the other Deployment was deleted too, and none was left.
func TestNameThatIsChangedBackLeavesADeployment(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("two", "old")
	h.expectReconciled("two")
	h.syncCaches()
	old := h.deployment("old")
	rename := func(name string) {
		h.updateFoo("two", func(f *v1alpha1.Foo) { f.Spec.DeploymentName = name })
		h.Expect(h.fooIndexer.Replace([]any{h.get("two")}, h.get("two").ResourceVersion)).To(Succeed())
	}
	rename("new")
	h.expectReconciled("two")

	renamed := h.deployment("new")
	h.Expect(h.deploymentIndexer.Replace([]any{old, renamed}, renamed.ResourceVersion)).To(Succeed())
	rename("old")
	_, err := h.reconcileFoo("two")
	h.Expect(err).To(MatchError(foo.ErrStale))
	h.Expect(h.deployment("new").UID).To(Equal(renamed.UID))

	h.syncCaches()
	h.expectReconciled("two")
	h.Expect(h.deployment("old").UID).NotTo(Equal(old.UID))
}

// An admission webhook blocks a request for longer than a reconciliation may take. It stops in time to report that.
func TestHangingRequestIsReported(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.hang = true
	ctx, cancel := context.WithTimeout(t.Context(), foo.ReportTime+5*time.Second)
	defer cancel()
	_, err := h.reconcile(ctx, cache.NewObjectName(h.namespace, "one"))
	h.Expect(err).To(MatchError(context.DeadlineExceeded), "the queue tries again")
	h.expectReason("one", v1alpha1.ReasonAPIError)
}

func TestTransientErrorIsReportedAndReturned(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		h := newByHand(t)
		h.create("one", "web")
		h.code = code
		_, err := h.reconcileFoo("one")
		h.Expect(err).To(HaveOccurred(), "so that the queue tries again")
		h.Expect(h.writes).To(Equal(2), "the apply, and the status")
		h.expectReason("one", v1alpha1.ReasonAPIError)
		h.syncCaches()
		_, err = h.reconcileFoo("one")
		h.Expect(err).To(HaveOccurred())
		h.Expect(h.writes).To(Equal(3), "the apply, and no other status")

		h.code = 0
		h.expectReconciled("one")
		h.expectReason("one", v1alpha1.ReasonRollingOut)
	}
}

// The optimistic lock: a status that is computed from an older Foo is not written.
func TestStatusOfAnOlderFooIsNotWritten(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	h.updateFoo("one", func(f *v1alpha1.Foo) { f.Labels = map[string]string{"changed": "since"} })
	_, err := h.reconcileFoo("one")
	h.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	h.Expect(h.get("one").Status.Conditions).To(BeEmpty())
}

// The index of owners has no namespaces: any user may write a uid into an owner reference.
func TestDeploymentOfAnotherNamespaceIsNotOwned(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	f := h.create("one", "web")
	h.expectReconciled("one")
	elsewhere := h.deployment("web")
	elsewhere.Namespace, elsewhere.Name = "elsewhere", "other"
	h.Expect(h.deploymentIndexer.Add(elsewhere)).To(Succeed())
	others, err := h.findOthers(f)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(others).To(BeEmpty())
}
