package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The seeds return `Result{Requeue: true}` "for any reason other than error". What each answer to a pass asks for, as
// controller-runtime takes it: the passes of one second for one key, to which nothing else happens.
func TestSeedWisdom_WhatAnAnswerAsksFor(t *testing.T) {
	t.Parallel()
	failure := errors.New("the API server does not answer")
	for name, test := range map[string]struct {
		result reconcile.Result
		err    error
		// passes are the least and the most.
		least, most int
	}{
		"1 nothing":                   {least: 1, most: 1},
		"2 RequeueAfter: 0":           {result: reconcile.Result{RequeueAfter: 0}, least: 1, most: 1},
		"3 RequeueAfter: 100ms":       {result: reconcile.Result{RequeueAfter: 100 * time.Millisecond}, least: 5, most: 10},
		"4 an error":                  {err: failure, least: 5, most: 8},
		"5 Requeue: true":             {result: reconcile.Result{Requeue: true}, least: 5, most: 8}, //nolint:staticcheck // It is deprecated, and this is why.
		"6 a TerminalError":           {err: reconcile.TerminalError(failure), least: 1, most: 1},
		"7 RequeueAfter and an error": {result: reconcile.Result{RequeueAfter: time.Hour}, err: failure, least: 5, most: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gaps := passesOf(t, test.result, test.err)
			t.Logf("%s: passes %d, pauses %v", name, len(gaps)+1, gaps)
			g := NewWithT(t)
			g.Expect(len(gaps) + 1).To(And(BeNumerically(">=", test.least), BeNumerically("<=", test.most)))
		})
	}
}

// passesOf runs a controller, without a cluster, whose passes all end alike, and returns the pauses between those of
// one second.
func passesOf(t *testing.T, result reconcile.Result, err error) (gaps []time.Duration) {
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g.Expect(c.Start(ctx)).To(Succeed())
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(gaps)
}
