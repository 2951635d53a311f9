package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

func (s *session) holdOne(ctx context.Context) (a, b *candidate, err error) {
	s.Printf("1. Two candidates, one Lease\n")
	if a, err = s.candidate(ctx, "a"); err != nil {
		return nil, nil, err
	}
	if err := await(ctx, a.leading); err != nil {
		return nil, nil, fmt.Errorf("waiting for a to lead: %w", err)
	}
	if b, err = s.candidate(ctx, "b"); err != nil {
		return nil, nil, err
	}
	if err := follows(ctx, b, "a"); err != nil {
		return nil, nil, err
	}
	s.Printf("   a leads: %t; b leads: %t, and knows of %s\n", a.elector.IsLeader(), b.elector.IsLeader(), b.elector.GetLeader())
	return a, b, s.tellLease(ctx)
}

func (s *session) handOver(ctx context.Context, a, b *candidate) error {
	s.Printf("2. The leader ends in order: first the work, then the Lease\n")
	end := time.Now()
	a.end()
	if err := await(ctx, b.leading); err != nil {
		return fmt.Errorf("waiting for b to lead: %w", err)
	}
	s.Printf("   when a released the Lease, its work had ended: %t\n", a.lock.inOrder.Load())
	s.Printf("   b had to wait for LeaseDuration (%v): %t\n", brief.lease, b.led.Sub(end) >= brief.lease)
	return s.tellLease(ctx)
}

func (s *session) waitOut(ctx context.Context, b *candidate) (*candidate, error) {
	s.Printf("3. The leader ends without warning: nothing is released\n")
	c, err := s.candidate(ctx, "c")
	if err != nil {
		return nil, err
	}
	if err := follows(ctx, c, "b"); err != nil {
		return nil, err
	}
	// To the others it is as after a kill -9.
	b.lock.cut()
	b.end()
	last, err := s.lease(ctx)
	if err != nil {
		return nil, err
	}
	s.Printf("   b is gone, and the Lease still names %s\n", *last.Spec.HolderIdentity)
	if err := await(ctx, c.leading); err != nil {
		return nil, fmt.Errorf("waiting for c to lead: %w", err)
	}
	s.Printf("   c had to wait for LeaseDuration (%v): %t\n", brief.lease, c.led.Sub(last.Spec.RenewTime.Time) >= brief.lease)
	return c, s.tellLease(ctx)
}

func (s *session) lose(ctx context.Context, c *candidate) (*candidate, error) {
	s.Printf("4. The leader cannot renew any more\n")
	if _, err := s.configMaps().Create(ctx, state(c.name), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating the state: %w", err)
	}
	d, err := s.candidate(ctx, "d")
	if err != nil {
		return nil, err
	}
	if err := follows(ctx, d, "c"); err != nil {
		return nil, err
	}
	c.lock.cut()
	if err := await(ctx, c.stopped); err != nil {
		return nil, fmt.Errorf("waiting for c to give up: %w", err)
	}
	<-c.ended
	if err := await(ctx, d.leading); err != nil {
		return nil, fmt.Errorf("waiting for d to lead: %w", err)
	}
	s.Printf("   c gave up after RenewDeadline (%v), d led after LeaseDuration (%v): c's work had ended by then: %t\n",
		brief.renew, brief.lease, c.idle.Before(d.led))
	s.Printf("   c does not stand again: Run has returned. A process that has lost its lease exits, and is started anew with empty caches\n")
	return d, s.tellLease(ctx)
}

// fence lets c do what was on its way when it lost the lease. Cancelling a context does not call back a
// request, nor does it stop a process that did not run at the time: paused, swapped out, or moved to
// another machine. The server is the only one who can refuse.
func (s *session) fence(ctx context.Context, c, d *candidate) error {
	s.Printf("5. A write of the old leader that was held up\n")
	held, err := s.configMaps().Get(ctx, "state", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the state: %w", err)
	}
	held.Data["writer"] = c.name // as c has read and changed it, before the pause
	if _, err := s.configMaps().Update(ctx, state(d.name), metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing as %s: %w", d.name, err)
	}
	_, err = s.configMaps().Update(ctx, held, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing as %s: %w", c.name, err)
	}
	s.Printf("   with the resourceVersion that it has read: refused with a conflict: %t\n", apierrors.IsConflict(err))
	if err := s.tellWriter(ctx); err != nil {
		return err
	}
	patch := []byte(`{"data":{"writer":"` + c.name + `"}}`)
	_, err = s.configMaps().Patch(ctx, held.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	s.Printf("   without one: accepted: %t\n", err == nil)
	return s.tellWriter(ctx)
}

func (s *session) tellWriter(ctx context.Context) error {
	now, err := s.configMaps().Get(ctx, "state", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the state: %w", err)
	}
	s.Printf("   the state is now that of %s\n", now.Data["writer"])
	return nil
}

// longest is more than anything here takes.
const longest = 30 * time.Second

// await waits for a channel to be closed.
func await(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follows waits until a candidate has seen who leads.
func follows(ctx context.Context, c *candidate, leader string) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, longest, true, func(context.Context) (bool, error) {
		return c.elector.GetLeader() == leader, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to see %s lead: %w", c.name, leader, err)
	}
	return nil
}
