package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// unreadable is a client whose reads fail.
type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no connection")
}

// An error when reading the Lolcow does not mean that it was deleted: the back-off of its last try is kept.
func TestRetriesAreKeptIfTheLolcowCannotBeRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	now := time.Now()
	r := NewLolcowReconciler(unreadable{}, nil, testclock.NewFakePassiveClock(now), "")
	req := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "farm", Name: "cow"}}
	lolcow := &v1alpha1.Lolcow{}
	r.retries.recordFailure(req, lolcow, now, dependents{}, errors.New("rejected"))
	_, err := r.Reconcile(t.Context(), req)
	g.Expect(err).To(MatchError("no connection"))
	_, wait := r.retries.lastFailure(req, lolcow, now)
	g.Expect(wait).To(BeNumerically(">", 0))
}
