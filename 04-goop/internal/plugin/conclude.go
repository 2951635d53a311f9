package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// settleWithin is how long the program waits for readers that it has stopped. They end at once, unless their output
// cannot be written.
const settleWithin = 2 * time.Second

// follow runs a session with a progress line, and then shows the remaining output of its workers. Before that it calls
// then with the reason for the end of the session. That function must not wait for output to be written.
func (a *app) follow(ctx context.Context, s *session, then func(why error)) error {
	stop := a.console.showProgress(s.progress.line)
	defer stop()
	why := s.run(ctx)
	then(why)
	stopped := make(chan struct{})
	go func() {
		s.readers.Wait()
		close(stopped)
	}()
	timer := s.clock.NewTimer(settleWithin)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C():
		return why
	}
	if err := s.leftOvers(why == nil); why == nil {
		why = err
	}
	return why
}

// leftOvers shows the existing output of workers that were not read to the end. If the work has ended, it also shows the
// failures in the status whose pods no longer exist.
func (s *session) leftOvers(ended bool) error {
	if s.sink == nil {
		return nil
	}
	defer s.notices.rest()
	var failed error
	for _, w := range s.workers {
		if w.out == nil && w.ended && !s.live {
			// It had to wait for its turn. Its record is there.
			w.out = s.sink.open(w.place)
		}
		if w.out != nil && !w.outEnded {
			failed = errors.Join(failed, w.out.end(w.cutShort()))
		}
	}
	if !ended {
		return failed
	}
	for _, f := range s.goop.Status.Failures {
		at := place{node: f.Node, round: f.Round}
		if s.delivered[at] {
			continue
		}
		s.delivered[at] = true
		record := &worker.Record{ExitCode: f.ExitCode, Output: f.Output}
		failed = errors.Join(failed, s.sink.open(at).end(result{place: at, record: record, lost: "no pod of it was found"}))
	}
	if missing := int(s.goop.Status.Succeeded+s.goop.Status.Failed) - len(s.delivered); missing > 0 {
		s.notices.once(fmt.Sprintf("the output of %d of %d workers is not available: no pods of them were found",
			missing, s.goop.Status.Succeeded+s.goop.Status.Failed))
	}
	return failed
}

// cutShort is the result of a worker that was not read to its end. The output of one that was followed while it ran on is
// complete up to then.
func (w *workerState) cutShort() result {
	lost := w.lost
	if lost == "" && (w.ended || w.gone || !w.follow) {
		lost = "its log was not read to the end"
	}
	return result{place: w.place, record: w.record, lost: lost, partial: w.cursor.any(), rest: w.cursor.rest(w.record)}
}

// conclude reports how the work ended, and returns its exit code. why is the reason for the end of the session, and did
// what was done to the Goop then.
func (a *app) conclude(s *session, why error, did string, timeout time.Duration) error {
	outcome, message := s.ending(why, timeout)
	if did != "" {
		message += "; " + did
	}
	if message != "" {
		a.console.say("%s", message)
	}
	if s.sink != nil {
		// If the output could not be written before, the error was reported already.
		if err := s.sink.finish(outcome); err != nil && why == nil {
			return err
		}
	}
	if outcome.exitCode == 0 {
		return nil
	}
	return exitError(outcome.exitCode)
}

// ending returns how the session's work ended, and a message about it if one is needed.
func (s *session) ending(why error, timeout time.Duration) (outcome summary, message string) {
	outcome = summary{goop: s.goop, unfinished: s.unfinished()}
	var signal signalError
	switch {
	case why == nil:
		outcome.exitCode, outcome.reason, message = verdict(s.goop, s.names)
		return outcome, message
	case errors.Is(why, errRejected):
		outcome.exitCode, outcome.reason = exitFailed, v1alpha1.ReasonHostAccessNotAllowed
		return outcome, "rejected: " + rejectionMessage(s.goop)
	case errors.Is(why, errDeleted):
		outcome.exitCode, outcome.reason = exitFailed, "Deleted"
		return outcome, "the Goop " + s.goop.Name + " was deleted before it had ended"
	case errors.Is(why, errTimedOut):
		outcome.exitCode, outcome.reason, message = exitTimedOut, "TimedOut", "timed out after "+timeout.String()
	case errors.As(why, &signal):
		outcome.exitCode, outcome.reason, message = signal.code(), "Interrupted", "interrupted"
	default:
		outcome.exitCode, outcome.reason, message = exitFailed, "Error", why.Error()
	}
	if status := s.goop.Status; status.Desired > 0 {
		message += fmt.Sprintf("; %d of %d workers are done", status.Succeeded+status.Failed, status.Desired)
	}
	if len(outcome.unfinished) > 0 {
		message += fmt.Sprintf("; not finished: %s", s.names.some(outcome.unfinished))
	}
	return outcome, message
}

// unfinished returns the workers whose pods exist and that have not ended.
func (s *session) unfinished() []place {
	var all []place
	for _, w := range s.workers {
		if !w.ended && !w.gone {
			all = append(all, w.place)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.round, b.round))
	})
	return all
}

// verdict returns how a Goop ended, and a message if it is not Complete.
func verdict(goop *v1alpha1.Goop, n *names) (code int, reason, message string) {
	failed := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionFailed)
	if failed == nil || failed.Status != metav1.ConditionTrue {
		return 0, v1alpha1.ReasonSucceeded, ""
	}
	if goop.Status.ExitCode != nil {
		code = int(*goop.Status.ExitCode)
	}
	switch {
	case failed.Reason == v1alpha1.ReasonDeadlineExceeded:
		code = exitTimedOut
	case code == 0:
		code = exitFailed
	}
	message = failed.Reason + ": " + failed.Message
	byCode := map[int32][]place{}
	for _, f := range goop.Status.Failures {
		if f.Round > 0 {
			n.several.Store(true)
		}
		byCode[f.ExitCode] = append(byCode[f.ExitCode], place{node: f.Node, round: f.Round})
	}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		message += fmt.Sprintf("; exit code %d: %s", code, n.some(byCode[code]))
	}
	if more := int(goop.Status.Failed) - len(goop.Status.Failures); more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return code, failed.Reason, message
}
