package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func (s *session) recordOne(ctx context.Context) error {
	s.Printf("1. An Event\n")
	recording, err := record(ctx, s.Client, nil)
	if err != nil {
		return err
	}
	recording.Eventf(s.subject, s.other, corev1.EventTypeNormal, "Copied", "Copy", "copied %d keys from %s", 3, s.other.Name)
	if err := recording.Close(ctx); err != nil {
		return err
	}
	found, err := s.with(ctx, "Copied")
	if err != nil {
		return err
	}
	for _, event := range found {
		s.Printf("   %s, %s: regarding %s %s, related %s %s\n", event.Type, event.Reason,
			event.Regarding.Kind, event.Regarding.Name, event.Related.Kind, event.Related.Name)
		s.Printf("   action %s by %s, note %q\n", event.Action, event.ReportingController, event.Note)
		s.Printf("   in the namespace of the regarding object: %t; its name begins with that of the object: %t\n",
			event.Namespace == s.subject.Namespace, strings.HasPrefix(event.Name, s.subject.Name+"."))
	}
	return nil
}

func (s *session) recordWithoutWaiting(ctx context.Context) error {
	s.Printf("2. Eventf does not wait for the server\n")
	gate := make(chan struct{})
	recording, err := record(ctx, s.Client, gate)
	if err != nil {
		return err
	}
	for i := range 10 {
		recording.Eventf(s.subject, nil, corev1.EventTypeNormal, fmt.Sprintf("Blocked%d", i), "Block", "blocked")
	}
	// Each call has returned before a request can have ended. It does not return an error either.
	s.Printf("   10 calls have returned; written: %d\n", recording.sink.sent().creates-recording.sink.sent().inFlight)
	close(gate)
	if err := recording.sink.until(ctx, func(t totals) bool { return t.creates == 10 }); err != nil {
		return err
	}
	s.Printf("   the server has responded; written: %d\n", recording.sink.sent().creates-recording.sink.sent().failed)
	return recording.Close(ctx)
}

func (s *session) recordSeries(ctx context.Context) error {
	s.Printf("3. A repeated Event is a count\n")
	recording, err := record(ctx, s.Client, nil)
	if err != nil {
		return err
	}
	failing := func(attempt int) {
		recording.Eventf(s.subject, nil, corev1.EventTypeWarning, "Failing", "Copy", "attempt %d", attempt)
	}
	sent := func(creates, patches int) error {
		return recording.sink.until(ctx, func(t totals) bool { return t.creates == creates && t.patches == patches })
	}
	// Eventf starts a goroutine. Only calls that wait for the one before have a fixed order.
	failing(1)
	if err := sent(1, 0); err != nil {
		return err
	}
	failing(2)
	if err := sent(1, 1); err != nil {
		return err
	}
	for i := range 3 {
		failing(3 + i)
	}
	if err := recording.sink.drain(ctx); err != nil {
		return err
	}
	found, err := s.with(ctx, "Failing")
	if err != nil {
		return err
	}
	t := recording.sink.sent()
	s.Printf("   5 calls: %d create, %d patch. On the server %d Event, count %d, note %q\n", t.creates, t.patches, len(found), found[0].Series.Count, found[0].Note)
	s.Printf("   the first note stays: the note is not part of the key. Counts above 2 are written after 30 min, or after 6 min without a repetition\n")

	changed := s.subject.DeepCopy()
	changed.Data = map[string]string{"changed": "yes"}
	if s.subject, err = s.ConfigMaps().Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the regarding object: %w", err)
	}
	failing(6)
	if err := sent(2, 1); err != nil {
		return err
	}
	if found, err = s.with(ctx, "Failing"); err != nil {
		return err
	}
	s.Printf("   the object has changed: its resourceVersion is part of the key. Events now: %d\n", len(found))
	return recording.Close(ctx)
}

func (s *session) exceedLimits(ctx context.Context) error {
	s.Printf("4. Limits: an Event that exceeds one is lost, and the caller gets no error\n")
	recording, err := record(ctx, s.Client, nil)
	if err != nil {
		return err
	}
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "Fits", "Write", "%s", strings.Repeat("x", 1024))
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "TooLong", "Write", "%s", strings.Repeat("x", 1025))
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "NoAction", "", "an action is required")
	recording.Eventf(s.subject, nil, "Error", "NoSuchType", "Write", "the type is neither Normal nor Warning: Eventf does not send it")
	if err := recording.Close(ctx); err != nil {
		return err
	}
	t := recording.sink.sent()
	s.Printf("   4 calls: %d sent, %d rejected and not retried\n", t.creates, t.failed)
	for _, reason := range []string{"Fits", "TooLong", "NoAction", "NoSuchType"} {
		found, err := s.with(ctx, reason)
		if err != nil {
			return err
		}
		s.Printf("   %-10s %d\n", reason, len(found))
	}
	return nil
}

func (s *session) end(ctx context.Context) error {
	s.Printf("6. The end of a program: the order matters\n")
	for _, cancelFirst := range []bool{true, false} {
		name, reason := "wait, Shutdown, cancel", "Written"
		if cancelFirst {
			name, reason = "cancel first", "Cancelled"
		}
		gate := make(chan struct{})
		recording, err := record(ctx, s.Client, gate)
		if err != nil {
			return err
		}
		for i := range 3 {
			recording.Eventf(s.subject, s.other, corev1.EventTypeNormal, reason, fmt.Sprintf("Stop%d", i), "the last note")
		}
		inFlight := func(requests int) error {
			return lesson.Until(ctx, fmt.Sprintf("%d requests are in flight", requests), func() bool { return recording.sink.sent().inFlight == requests })
		}
		if err := inFlight(3); err != nil {
			return err
		}
		if cancelFirst {
			recording.cancel()
			if err := inFlight(0); err != nil {
				return err
			}
		}
		close(gate)
		if err := recording.Close(ctx); err != nil {
			return err
		}
		found, err := s.with(ctx, reason)
		if err != nil {
			return err
		}
		s.Printf("   %-23s %d of 3 written\n", name+":", len(found))
	}
	return nil
}
