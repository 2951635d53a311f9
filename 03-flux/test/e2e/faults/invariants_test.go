package faults

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/faults"
)

// owned is that the operator writes only what is its own. A Job that its FluxSetup has recorded is, even without an owner.
var owned = faults.Invariant{Name: "the operator writes only what is its own", Check: func(ctx context.Context, s *faults.State) error {
	before := s.Last.Before
	if before == nil {
		return nil
	}
	setups, err := faults.All[v1alpha1.FluxSetup](s)
	if err != nil || slices.ContainsFunc(setups, func(setup *v1alpha1.FluxSetup) bool {
		return setup.Spec.Launch != nil && setup.Spec.Launch.JobUID == string(before.GetUID())
	}) {
		return err
	}
	return faults.Owned(&v1alpha1.Flux{}, &v1alpha1.FluxSetup{}).Check(ctx, s)
}}

// attempt is an attempt of a FluxSetup.
type attempt struct {
	setup types.UID
	job   string
}

// attemptOf is the attempt that a pod of rank 0 belongs to, if the last write started its container.
func attemptOf(s *faults.State, w faults.Write) (*attempt, error) {
	before, after, err := faults.Of[corev1.Pod](s, w)
	if err != nil || after == nil || !runs(after) || (before != nil && runs(before)) || rankOf(after) != "0" {
		return nil, err
	}
	owner := metav1.GetControllerOf(after)
	if owner == nil {
		return nil, nil
	}
	for _, w := range s.Writes() {
		_, job, err := faults.Of[batchv1.Job](s, w)
		if err != nil {
			return nil, err
		}
		if job != nil && job.UID == owner.UID && metav1.GetControllerOf(job) != nil {
			return &attempt{metav1.GetControllerOf(job).UID, job.Name}, nil
		}
	}
	return nil, nil
}

// once is that the command of an attempt starts once, unless another writer has changed its Job.
var once = faults.Invariant{Name: "the command of an attempt starts once", Check: func(_ context.Context, s *faults.State) error {
	now, err := attemptOf(s, s.Last)
	if err != nil || now == nil {
		return err
	}
	for _, w := range s.Writes()[:len(s.Writes())-1] {
		if w.By == "user" && w.Before != nil && w.Resource.Resource == "jobs" {
			return nil
		}
		if one, err := attemptOf(s, w); err != nil || one != nil && *one == *now {
			return fmt.Errorf("the command of Job %s starts again: %w", now.job, err)
		}
	}
	return nil
}}

// alone is that no attempt begins while a pod of an earlier attempt of the same Flux runs.
var alone = faults.Invariant{Name: "no two attempts run at once", Check: func(_ context.Context, s *faults.State) error {
	now, err := attemptOf(s, s.Last)
	if err != nil || now == nil {
		return err
	}
	jobs, err := faults.All[batchv1.Job](s)
	if err != nil {
		return err
	}
	pods, err := faults.All[corev1.Pod](s)
	for _, pod := range pods {
		for _, job := range jobs {
			owner := metav1.GetControllerOf(job)
			if runs(pod) && metav1.IsControlledBy(pod, job) && job.Name != now.job && owner != nil && owner.UID == now.setup {
				return fmt.Errorf("%s runs, and the command of %s starts", pod.GenerateName, now.job)
			}
		}
	}
	return err
}}

// ends is that an end stays: Complete and Failed are not taken back.
var ends = faults.Invariant{Name: "what has ended has ended", Check: func(_ context.Context, s *faults.State) error {
	before, after, err := faults.Of[v1alpha1.Flux](s, s.Last)
	if err == nil && before != nil && after != nil && hasEndedFlux(before) && !hasEndedFlux(after) {
		return fmt.Errorf("%s had ended and has not", after.Name)
	}
	return err
}}

func hasEndedFlux(flux *v1alpha1.Flux) bool {
	return apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionComplete) ||
		apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionFailed)
}

// reported is that in steady state the status is about the current generation, reports no failure that has passed, and says that a
// command has succeeded only if rank 0 has.
var reported = faults.Invariant{Name: "the status says what is", Check: func(_ context.Context, s *faults.State) error {
	if !s.Steady {
		return nil
	}
	fluxes, err := faults.All[v1alpha1.Flux](s)
	if err != nil {
		return err
	}
	for _, flux := range fluxes {
		if flux.Status.ObservedGeneration != flux.Generation {
			return fmt.Errorf("%s has a status of an older spec", flux.Name)
		}
		ready := apimeta.FindStatusCondition(flux.Status.Conditions, v1alpha1.ConditionSetupReady)
		if ready != nil && slices.Contains([]string{v1alpha1.ReasonAPIError, v1alpha1.ReasonApplyFailed}, ready.Reason) {
			return fmt.Errorf("%s reports a failure that has passed: %v", flux.Name, ready)
		}
		if code := flux.Status.ExitCode; apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionComplete) && (code == nil || *code != 0) {
			return fmt.Errorf("%s is Complete, and its exit code is not 0", flux.Name)
		}
	}
	return nil
}}
