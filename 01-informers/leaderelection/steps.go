package main

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/01-informers/internal/lesson"
)

// state is the name of the ConfigMap that the leaders write. Its value is the name of the leader.
const state = "state"

func (s *session) elect(ctx context.Context) {
	s.Printf("1. Two candidates, one Lease\n")
	s.a = s.candidate(ctx, "a", "")
	s.b = s.candidate(ctx, "b", "a")
	s.Printf("   a leads: %t; b leads: %t, and has read the holder %s\n", s.a.elector.IsLeader(), s.b.elector.IsLeader(), s.b.elector.GetLeader())
	s.printLease(ctx)
}

func (s *session) release(ctx context.Context) {
	s.Printf("2. The leader stops in order: first the work, then the Lease\n")
	stopped := time.Now()
	s.a.stop()
	s.b.awaitLeading(ctx)
	s.Printf("   when a released the Lease, its work had ended: %t\n", s.a.lock.inOrder.Load())
	s.Printf("   b had to wait for LeaseDuration (%v): %t\n", brief.lease, s.b.workBegan.Sub(stopped) >= brief.lease)
	s.printLease(ctx)
}

func (s *session) lose(ctx context.Context) {
	s.Printf("3. The leader cannot renew the Lease\n")
	s.CreateConfigMap(ctx, state, "b")
	s.c = s.candidate(ctx, "c", "b")
	s.b.lock.cut()
	await(ctx, "b has stopped leading", s.b.stopped)
	<-s.b.ended
	s.c.awaitLeading(ctx)
	s.Printf("   b stopped leading after RenewDeadline (%v), c led after LeaseDuration (%v): b's work had ended by then: %t\n",
		brief.renew, brief.lease, s.b.workEnded.Before(s.c.workBegan))
	s.Printf("   b is not a candidate any more: Run has returned. A process that has lost its Lease exits, and starts again with empty caches\n")
	s.printLease(ctx)
}

// writeLate sends the writes that b prepared before it lost the Lease. A cancelled context does not take back a
// request, and does not stop a process that was not running at that time: paused, swapped out, or migrated to
// another machine. Only the server can reject the write.
func (s *session) writeLate(ctx context.Context) {
	s.Printf("4. A late write of the former leader\n")
	late := lesson.Must(s.ConfigMaps().Get(ctx, state, metav1.GetOptions{}))
	late.Data["value"] = "b" // b has read the object before the pause.
	s.UpdateConfigMap(ctx, state, "c")
	_, err := s.ConfigMaps().Update(ctx, late, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		lesson.Check(err)
	}
	s.Printf("   with the resourceVersion that it has read: rejected with a conflict: %t\n", apierrors.IsConflict(err))
	s.printWriter(ctx)
	_, err = s.ConfigMaps().Patch(ctx, state, types.MergePatchType, []byte(`{"data":{"value":"b"}}`), metav1.PatchOptions{})
	s.Printf("   without one: accepted: %t\n", err == nil)
	s.printWriter(ctx)
}

func (s *session) printWriter(ctx context.Context) {
	current := lesson.Must(s.ConfigMaps().Get(ctx, state, metav1.GetOptions{}))
	s.Printf("   the state was last written by %s\n", current.Data["value"])
}
