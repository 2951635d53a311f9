package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The study journal returns `Result{Requeue: true}` "for any reason other than error". Each case is one result of Reconcile, with
// the number of reconciliations that controller-runtime then starts within one second, if no event follows.
func TestSeedWisdom_HowOftenEachResultIsReconciledAgain(t *testing.T) {
	t.Parallel()
	failure := errors.New("the API server does not respond")
	for name, test := range map[string]struct {
		result reconcile.Result
		err    error
		calls  int
	}{
		"1 nothing":                   {calls: 1},
		"2 RequeueAfter: 0":           {result: reconcile.Result{RequeueAfter: 0}, calls: 1},
		"3 RequeueAfter: 100ms":       {result: reconcile.Result{RequeueAfter: 100 * time.Millisecond}, calls: 10},
		"4 an error":                  {err: failure, calls: 8},
		"5 Requeue: true":             {result: reconcile.Result{Requeue: true}, calls: 8}, //nolint:staticcheck // It is deprecated, and this is why.
		"6 a TerminalError":           {err: reconcile.TerminalError(failure), calls: 1},
		"7 RequeueAfter and an error": {result: reconcile.Result{RequeueAfter: time.Hour}, err: failure, calls: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Time is simulated in the bubble, so a busy machine does not change the result.
			synctest.Test(t, func(t *testing.T) {
				gaps := pausesOf(t, test.result, test.err)
				t.Logf("%s: reconciliations %d, pauses %v", name, len(gaps)+1, gaps)
				NewWithT(t).Expect(len(gaps) + 1).To(Equal(test.calls))
			})
		})
	}
}

// pausesOf runs a controller, without a cluster, whose reconciliations all have the same result, and returns the pauses between
// those within one second.
func pausesOf(t *testing.T, result reconcile.Result, err error) (gaps []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var last time.Time
	c, failed := controller.NewUnmanaged("lolcow", controller.Options{
		SkipNameValidation: new(true),
		Logger:             logr.Discard(),
		Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if !last.IsZero() {
				gaps = append(gaps, now.Sub(last).Round(time.Millisecond))
			}
			last = now
			return result, err
		}),
	})
	g := NewWithT(t)
	g.Expect(failed).NotTo(HaveOccurred())
	g.Expect(c.Watch(source.Func(func(_ context.Context, q queue) error {
		q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "cow"}})
		return nil
	}))).To(Succeed())
	// One millisecond less than a second: a reconciliation exactly at the end would be counted only sometimes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second-time.Millisecond)
	defer cancel()
	g.Expect(c.Start(ctx)).To(Succeed())
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(gaps)
}
