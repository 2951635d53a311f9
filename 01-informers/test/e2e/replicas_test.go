package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

var _ = Describe("Two replicas", func() {
	It("never write at once although leaders are killed at work, and all converges", Serial, func(ctx SpecContext) {
		Expect(env.Operator.Scale(ctx, 2)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Operator.Scale(ctx, 1)).To(Succeed()) })
		namespace := env.Namespace(ctx)
		began := renewal(ctx, time.Now())

		work := beginWork(namespace)
		var killed []string
		for i := range 2 {
			work.until(ctx, "the leader is busy", func() bool { return isBusy(ctx, began, i) })
			leader, err := env.Operator.KillLeader(ctx)
			Expect(err).NotTo(HaveOccurred())
			killed = append(killed, leader)
		}
		work.until(ctx, "the third leader is busy", func() bool { return isBusy(ctx, began, 2) })
		count := work.end()
		expectConverged(ctx, namespace, count)

		terms := termsSince(ctx, began)
		Expect(terms).To(HaveLen(3))
		for i, leader := range killed {
			Expect(terms[i].Writer).To(ContainSubstring(leader), "they were killed in this order")
		}
		for i, next := range terms[1:] {
			former := terms[i]
			renewed := former.Leases[len(former.Leases)-1].RequestReceivedTimestamp.Time
			Expect(next.Began()).To(BeTemporally(">=", renewed.Add(e2e.LeaseDuration)), "it acquired a lease that had not expired")
			fmt.Printf("==> %s: %.1f s without a leader; %.1f s from the last renewal of the lease to the next leader\n",
				*implementation, next.Began().Sub(former.Last()).Seconds(), next.Began().Sub(renewed).Seconds())
		}
		fmt.Printf("==> %s: %d Foos, %d, %d and %d writes by three leaders\n",
			*implementation, count, len(terms[0].Writes), len(terms[1].Writes), len(terms[2].Writes))
	})
})

// renewal is when the lease was next renewed after a moment. The term of the first leader is counted from there: it has acquired
// the lease long before, and earlier writes are of other specs.
func renewal(ctx context.Context, since time.Time) time.Time {
	GinkgoHelper()
	var at time.Time
	Eventually(ctx, func() []audit.Event {
		renewals := requests(ctx, since, audit.Resource("coordination.k8s.io", "leases"))
		if len(renewals) > 0 {
			at = renewals[0].RequestReceivedTimestamp.Time
		}
		return renewals
	}).WithTimeout(expect.Soon).ShouldNot(BeEmpty(), "the lease is renewed")
	return at
}

// requests are the writes of the operator since a moment, also to the lease, that match the filters.
func requests(ctx context.Context, since time.Time, filters ...audit.Filter) []audit.Event {
	GinkgoHelper()
	filters = append(filters, audit.By(env.Operator.User()), audit.Writes(), audit.Since(since))
	events, err := audit.Read(ctx, env.Cluster, filters...)
	Expect(err).NotTo(HaveOccurred())
	return events
}

// termsSince are those of the leaders since a moment. It fails the spec if two wrote at once. The user agent has the identity of
// the replica, as the lease has it.
func termsSince(ctx context.Context, since time.Time) []audit.Term {
	GinkgoHelper()
	terms, err := audit.Terms(requests(ctx, since), func(e *audit.Event) string { return e.UserAgent }, e2e.LeaseDuration)
	Expect(err).NotTo(HaveOccurred())
	for _, term := range terms {
		Expect(term.Writer).To(HavePrefix("foo-controller/" + *implementation + " ("))
	}
	return terms
}

// isBusy reports whether leader number i since a moment is at work.
func isBusy(ctx context.Context, since time.Time, i int) bool {
	GinkgoHelper()
	terms := termsSince(ctx, since)
	return len(terms) == i+1 && len(terms[i].Writes) >= 50
}

// work is a stream of changes to the Foos of a namespace, so that the leader always has something to write. The Foos have no
// pods, because they are many.
type work struct {
	namespace string
	stop      context.CancelFunc
	done      chan struct{}
	count     int
}

func beginWork(namespace string) *work {
	ctx, stop := context.WithCancel(context.Background())
	w := &work{namespace: namespace, stop: stop, done: make(chan struct{})}
	DeferCleanup(w.end)
	go func() {
		defer close(w.done)
		defer GinkgoRecover()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.step(context.WithoutCancel(ctx))
			}
		}
	}()
	return w
}

// step creates a Foo, and changes the deploymentName of the one before it.
func (w *work) step(ctx context.Context) {
	Expect(env.Client.Create(ctx, newFoo(w.namespace, fooName(w.count), 0))).To(Succeed())
	if w.count > 0 {
		former := newFoo(w.namespace, fooName(w.count-1), 0)
		patch := fmt.Sprintf(`{"spec":{"deploymentName":"%s-renamed"}}`, former.Name)
		Expect(env.Client.Patch(ctx, former, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}
	w.count++
}

func fooName(i int) string { return fmt.Sprintf("foo-%04d", i) }

// until waits for a condition while the work goes on.
func (w *work) until(ctx context.Context, what string, so func() bool) {
	GinkgoHelper()
	Eventually(ctx, so).WithTimeout(expect.Eventually).WithPolling(time.Second).Should(BeTrue(), "waiting until %s", what)
	Expect(w.done).NotTo(BeClosed(), "the changes have ended")
}

// end ends the work and returns the number of Foos. It may be called again.
func (w *work) end() int {
	w.stop()
	<-w.done
	return w.count
}

// expectConverged waits until each Foo is as its spec describes it, and asserts that there is one Deployment for each, and no
// other one.
func expectConverged(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	var foos v1alpha1.FooList
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.Client.List(ctx, &foos, client.InNamespace(namespace))).To(Succeed())
		g.Expect(foos.Items).To(HaveLen(count))
		for _, foo := range foos.Items {
			ready := readyOf(&foo)
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonScaledToZero), "%s: %s", foo.Name, ready.Message)
			g.Expect(ready.ObservedGeneration).To(Equal(foo.Generation), foo.Name)
		}
	}).WithTimeout(expect.Eventually).WithPolling(time.Second).Should(Succeed())
	want := map[string]string{}
	for _, foo := range foos.Items {
		want[foo.Spec.DeploymentName] = string(foo.UID)
	}
	Eventually(ctx, func() map[string]string {
		got := map[string]string{}
		for _, deployment := range deploymentsIn(ctx, namespace) {
			got[deployment.Name] = string(ptr.Deref(metav1.GetControllerOf(&deployment), metav1.OwnerReference{}).UID)
		}
		return got
	}).WithTimeout(expect.Soon).WithPolling(time.Second).Should(Equal(want), "one Deployment for each Foo, by its uid")
}
