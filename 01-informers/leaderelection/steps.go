package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// state is the name of the ConfigMap that the leaders write. Its value is the name of the leader.
const state = "state"

func (s *session) elect(ctx context.Context) (err error) {
	s.Printf("1. Two candidates, one Lease\n")
	if s.a, err = s.candidate(ctx, "a", ""); err != nil {
		return err
	}
	if s.b, err = s.candidate(ctx, "b", "a"); err != nil {
		return err
	}
	s.Printf("   a leads: %t; b leads: %t, and has read the holder %s\n", s.a.elector.IsLeader(), s.b.elector.IsLeader(), s.b.elector.GetLeader())
	return s.printLease(ctx)
}

func (s *session) release(ctx context.Context) error {
	s.Printf("2. The leader stops in order: first the work, then the Lease\n")
	stopped := time.Now()
	s.a.stop()
	if err := s.b.awaitLeading(ctx); err != nil {
		return err
	}
	s.Printf("   when a released the Lease, its work had ended: %t\n", s.a.lock.inOrder.Load())
	s.Printf("   b had to wait for LeaseDuration (%v): %t\n", brief.lease, s.b.workBegan.Sub(stopped) >= brief.lease)
	return s.printLease(ctx)
}

func (s *session) lose(ctx context.Context) (err error) {
	s.Printf("3. The leader cannot renew the Lease\n")
	if _, err := s.CreateConfigMap(ctx, state, "b"); err != nil {
		return err
	}
	if s.c, err = s.candidate(ctx, "c", "b"); err != nil {
		return err
	}
	s.b.lock.cut()
	if err := await(ctx, "b has stopped leading", s.b.stopped); err != nil {
		return err
	}
	<-s.b.ended
	if err := s.c.awaitLeading(ctx); err != nil {
		return err
	}
	s.Printf("   b stopped leading after RenewDeadline (%v), c led after LeaseDuration (%v): b's work had ended by then: %t\n",
		brief.renew, brief.lease, s.b.workEnded.Before(s.c.workBegan))
	s.Printf("   b is not a candidate any more: Run has returned. A process that has lost its Lease exits, and starts again with empty caches\n")
	return s.printLease(ctx)
}

// writeLate sends the writes that b prepared before it lost the Lease. A cancelled context does not take back a
// request, and does not stop a process that was not running at that time: paused, swapped out, or migrated to
// another machine. Only the server can reject the write.
func (s *session) writeLate(ctx context.Context) error {
	s.Printf("4. A late write of the former leader\n")
	late, err := s.ConfigMaps().Get(ctx, state, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the state: %w", err)
	}
	late.Data["value"] = "b" // b has read the object before the pause.
	if err := s.UpdateConfigMap(ctx, state, "c"); err != nil {
		return err
	}
	_, err = s.ConfigMaps().Update(ctx, late, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing as b: %w", err)
	}
	s.Printf("   with the resourceVersion that it has read: rejected with a conflict: %t\n", apierrors.IsConflict(err))
	if err := s.printWriter(ctx); err != nil {
		return err
	}
	_, err = s.ConfigMaps().Patch(ctx, state, types.MergePatchType, []byte(`{"data":{"value":"b"}}`), metav1.PatchOptions{})
	s.Printf("   without one: accepted: %t\n", err == nil)
	return s.printWriter(ctx)
}

func (s *session) printWriter(ctx context.Context) error {
	current, err := s.ConfigMaps().Get(ctx, state, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the state: %w", err)
	}
	s.Printf("   the state was last written by %s\n", current.Data["value"])
	return nil
}
