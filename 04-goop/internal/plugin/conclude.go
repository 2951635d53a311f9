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

// settleWithin is how long readers are waited for that were told to stop. They do so at once, but for those whose
// output nobody takes.
const settleWithin = 2 * time.Second

// follow runs a session with a line of progress, and then shows what is left to be shown of its workers. Before that it
// calls then, with why the session ended: it must not wait for somebody to take the output.
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

// leftOvers shows what is there of workers that were not read to the end, and, if the work is over, the failures that
// the operator wrote down and whose pods are gone.
func (s *session) leftOvers(over bool) error {
	if s.sink == nil {
		return nil
	}
	defer s.notices.rest()
	var failed error
	for _, w := range s.workers {
		if w.out != nil && !w.outEnded {
			failed = errors.Join(failed, w.out.end(result{place: w.place, record: w.record, partial: true}))
		}
	}
	if !over {
		return failed
	}
	for _, f := range s.goop.Status.Failures {
		at := place{node: f.Node, round: f.Round}
		if s.delivered[at] {
			continue
		}
		s.delivered[at] = true
		record := &worker.Record{ExitCode: f.ExitCode, Output: f.Output}
		failed = errors.Join(failed, s.sink.open(at).end(result{place: at, record: record, lost: "its pod is gone"}))
	}
	if missing := int(s.goop.Status.Succeeded+s.goop.Status.Failed) - len(s.delivered); missing > 0 {
		s.notices.once(fmt.Sprintf("the output of %d of %d workers could not be had: their pods are gone",
			missing, s.goop.Status.Succeeded+s.goop.Status.Failed))
	}
	return failed
}

// conclude says how the work ended, and returns the exit code of it. The session ended for why, and then did was done
// to the Goop.
func (a *app) conclude(s *session, why error, did string, timeout time.Duration) error {
	of, said := s.ending(why, timeout)
	if did != "" {
		said += "; " + did
	}
	if said != "" {
		a.console.say("%s", said)
	}
	if s.sink != nil {
		// Where the output could not be written before, nobody needs to be told again.
		if err := s.sink.finish(of); err != nil && why == nil {
			return err
		}
	}
	if of.exitCode == 0 {
		return nil
	}
	return exitError(of.exitCode)
}

// ending is how the session's work ended, also in words, if they are needed.
func (s *session) ending(why error, timeout time.Duration) (of summary, said string) {
	of = summary{goop: s.goop, unfinished: s.unfinished()}
	var signal signalError
	switch {
	case why == nil:
		of.exitCode, of.reason, said = verdict(s.goop, s.names)
		return of, said
	case errors.Is(why, errRefused):
		of.exitCode, of.reason = exitFailed, v1alpha1.ReasonHostAccessRefused
		return of, "refused: " + refusal(s.goop)
	case errors.Is(why, errDeleted):
		of.exitCode, of.reason = exitFailed, "Deleted"
		return of, "the Goop " + s.goop.Name + " was deleted before it was over"
	case errors.Is(why, errTimedOut):
		of.exitCode, of.reason, said = exitTimedOut, "TimedOut", "timed out after "+timeout.String()
	case errors.As(why, &signal):
		of.exitCode, of.reason, said = signal.code(), "Interrupted", "interrupted"
	default:
		of.exitCode, of.reason, said = exitFailed, "Error", why.Error()
	}
	if status := s.goop.Status; status.Desired > 0 {
		said += fmt.Sprintf("; %d of %d workers are done", status.Succeeded+status.Failed, status.Desired)
	}
	if len(of.unfinished) > 0 {
		said += fmt.Sprintf("; not finished: %s", s.names.some(of.unfinished))
	}
	return of, said
}

// unfinished are the workers whose pods are there and that have not ended.
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

// verdict is how a Goop that is over ended, also in words, if it is not Complete.
func verdict(goop *v1alpha1.Goop, n *names) (code int, reason, said string) {
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
	said = failed.Reason + ": " + failed.Message
	byCode := map[int32][]place{}
	for _, f := range goop.Status.Failures {
		if f.Round > 0 {
			n.several.Store(true)
		}
		byCode[f.ExitCode] = append(byCode[f.ExitCode], place{node: f.Node, round: f.Round})
	}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		said += fmt.Sprintf("; exit code %d: %s", code, n.some(byCode[code]))
	}
	if more := int(goop.Status.Failed) - len(goop.Status.Failures); more > 0 {
		said += fmt.Sprintf("; and %d more", more)
	}
	return code, failed.Reason, said
}
