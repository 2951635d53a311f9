package raw

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

func TestRecordsOfADeletedFooAreDropped(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	f := h.create("one", "web")
	h.expectReconciled("one")
	h.Expect(h.fooIndexer.Delete(f)).To(Succeed())
	h.expectReconciled("one")
	h.Expect(h.written.writes).To(BeEmpty())
}

func TestDeploymentNotOwnedThatTheCacheLacksIsNotAdopted(t *testing.T) {
	t.Parallel()
	h := newByHand(t)
	h.create("one", "web")
	before := h.createNotOwned("web")
	requeueAfter, err := h.reconcileFoo("one")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(requeueAfter).To(Equal(foo.UncachedRetry))
	h.expectReason("one", v1alpha1.ReasonNameConflict)
	h.Expect(h.deployment("web")).To(Equal(before))
	h.Expect(h.attempts.Of(h.get("one"))).To(Equal(foo.Retry{}), "such a conflict is no failed try")

	// The cache may never have it, and then its deletion is no event.
	h.deleteDeployment("web")
	h.syncCaches()
	h.expectReconciled("one")
	h.expectReason("one", v1alpha1.ReasonRollingOut)
}

// The deploymentName is changed and changed back while the cache still has the Deployment of the first name, which is deleted.
// If that cache were taken for up to date, the deleted Deployment would pass for the desired one, the other one would be deleted
// as that of an earlier spec, and the Foo would have none.
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

// An admission webhook blocks a request for longer than a reconciliation may take. The reconciliation stops in time to report
// that.
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
