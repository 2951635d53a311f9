package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *session) sayOnce(ctx context.Context) error {
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
		s.Printf("   in the namespace of what it is about: %t; name begins with %s's: %t\n",
			event.Namespace == s.subject.Namespace, s.subject.Name, strings.HasPrefix(event.Name, s.subject.Name+"."))
	}
	return nil
}

func (s *session) doNotWait(ctx context.Context) error {
	s.Printf("2. Nobody waits for the server\n")
	gate := make(chan struct{})
	recording, err := record(ctx, s.Client, gate)
	if err != nil {
		return err
	}
	for i := range 10 {
		recording.Eventf(s.subject, nil, corev1.EventTypeNormal, fmt.Sprintf("Held%d", i), "Hold", "held")
	}
	// Each call has returned, though no request can have ended. There is no error to look at, either.
	s.Printf("   10 calls returned; written: %d\n", recording.sink.sent().creates-recording.sink.sent().underWay)
	close(gate)
	if err := until(ctx, func() bool { t := recording.sink.sent(); return t.creates == 10 && t.underWay == 0 }); err != nil {
		return fmt.Errorf("waiting for the Events: %w", err)
	}
	s.Printf("   the server answers; written: %d\n", recording.sink.sent().creates-recording.sink.sent().failed)
	return recording.Close(ctx)
}

func (s *session) sayAgain(ctx context.Context) error {
	s.Printf("3. The same again is a count\n")
	recording, err := record(ctx, s.Client, nil)
	if err != nil {
		return err
	}
	settled := func(creates, patches int) error {
		return until(ctx, func() bool {
			t := recording.sink.sent()
			return t.creates == creates && t.patches == patches && t.underWay == 0
		})
	}
	// Calls are handed over by goroutines: one at a time, so that their order is known.
	recording.Eventf(s.subject, nil, corev1.EventTypeWarning, "Failing", "Copy", "attempt 1")
	if err := settled(1, 0); err != nil {
		return fmt.Errorf("waiting for the first Event: %w", err)
	}
	recording.Eventf(s.subject, nil, corev1.EventTypeWarning, "Failing", "Copy", "attempt 2")
	if err := settled(1, 1); err != nil {
		return fmt.Errorf("waiting for the series: %w", err)
	}
	for i := range 3 {
		recording.Eventf(s.subject, nil, corev1.EventTypeWarning, "Failing", "Copy", "attempt %d", 3+i)
	}
	if err := recording.sink.rest(ctx); err != nil {
		return err
	}
	found, err := s.with(ctx, "Failing")
	if err != nil {
		return err
	}
	t := recording.sink.sent()
	s.Printf("   5 calls: %d create, %d patch. On the server %d Event, count %d, note %q\n", t.creates, t.patches, len(found), found[0].Series.Count, found[0].Note)
	s.Printf("   the first note stays, as it is no part of what makes the same. Counts above 2 are written after 30 min, or when 6 min have passed without another\n")

	changed := s.subject.DeepCopy()
	changed.Data = map[string]string{"changed": "yes"}
	if s.subject, err = s.Client.CoreV1().ConfigMaps(s.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the subject: %w", err)
	}
	recording.Eventf(s.subject, nil, corev1.EventTypeWarning, "Failing", "Copy", "attempt 6")
	if err := settled(2, 1); err != nil {
		return fmt.Errorf("waiting for another Event: %w", err)
	}
	if found, err = s.with(ctx, "Failing"); err != nil {
		return err
	}
	s.Printf("   the object was changed in between: its resourceVersion is part of the key. Events now: %d\n", len(found))
	return recording.Close(ctx)
}

func (s *session) exceedLimits(ctx context.Context) error {
	s.Printf("4. Limits: what is too long is lost, and the caller is not told\n")
	recording, err := record(ctx, s.Client, nil)
	if err != nil {
		return err
	}
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "Fits", "Write", "%s", strings.Repeat("x", 1024))
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "TooLong", "Write", "%s", strings.Repeat("x", 1025))
	recording.Eventf(s.subject, nil, corev1.EventTypeNormal, "NoAction", "", "an action is required")
	recording.Eventf(s.subject, nil, "Error", "NoSuchType", "Write", "neither Normal nor Warning: not even sent")
	if err := recording.Close(ctx); err != nil {
		return err
	}
	t := recording.sink.sent()
	s.Printf("   4 calls: %d sent, %d refused and not tried again\n", t.creates, t.failed)
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
	s.Printf("6. The end: the order decides\n")
	for _, ending := range []struct {
		name, reason string
		close        func(*recording, func()) error
	}{
		{"cancel first", "Cancelled", func(r *recording, open func()) error {
			r.cancel()
			open()
			return r.Close(ctx)
		}},
		{"wait, Shutdown, cancel", "Flushed", func(r *recording, open func()) error {
			open()
			return r.Close(ctx)
		}},
	} {
		gate := make(chan struct{})
		recording, err := record(ctx, s.Client, gate)
		if err != nil {
			return err
		}
		for i := range 3 {
			recording.Eventf(s.subject, s.other, corev1.EventTypeNormal, ending.reason, fmt.Sprintf("Stop%d", i), "goodbye")
		}
		if err := until(ctx, func() bool { return recording.sink.sent().underWay == 3 }); err != nil {
			return fmt.Errorf("waiting for the requests: %w", err)
		}
		// The gate opens when the requests have seen what ends them, if they have.
		err = ending.close(recording, func() {
			if ending.reason == "Cancelled" {
				_ = until(ctx, func() bool { return recording.sink.sent().underWay == 0 })
			}
			close(gate)
		})
		if err != nil {
			return err
		}
		found, err := s.with(ctx, ending.reason)
		if err != nil {
			return err
		}
		s.Printf("   %-23s %d of 3 written\n", ending.name+":", len(found))
	}
	return nil
}
