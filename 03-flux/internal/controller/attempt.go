package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// jobName is the name of the Job of the current attempt, and of its ConfigMap and its Secret.
func jobName(setup *v1alpha1.FluxSetup) string {
	return fmt.Sprintf("%s-%d", setup.Name, setup.Spec.Attempt)
}

// launchRecorded reports whether the launch of the current attempt is recorded, even if the Job could not be started yet.
func launchRecorded(setup *v1alpha1.FluxSetup) bool {
	return setup.Spec.Launch != nil && setup.Spec.Launch.Attempt == setup.Spec.Attempt
}

// jobRecorded reports whether the Job of the current attempt is recorded.
func jobRecorded(setup *v1alpha1.FluxSetup) bool {
	return launchRecorded(setup) && setup.Spec.Launch.JobUID != ""
}

// started reports whether a Job may have run. One that has lost its mark counts as started.
func started(job *batchv1.Job) bool {
	return job.Annotations[annotationStarted] != "false" || !ptr.Deref(job.Spec.Suspend, false)
}

// launchTime is when the current attempt was launched; zero if it was not, or if there is no FluxSetup.
func launchTime(setup *v1alpha1.FluxSetup) time.Time {
	if setup == nil || !launchRecorded(setup) {
		return time.Time{}
	}
	return setup.Spec.Launch.Time.Time
}

// startTime is when a Job was started; zero if it was not, or if there is no Job.
func startTime(job *batchv1.Job) time.Time {
	if job == nil {
		return time.Time{}
	}
	start, err := time.Parse(time.RFC3339, job.Annotations[annotationStartTime])
	if err != nil {
		return time.Time{}
	}
	return start
}

// startupEnd is when startupTimeoutSeconds expires for the current attempt. The time counts from the launch, and again
// from the start of the Job, because the Job may start late. since is when the operator first read of the later of them: after
// a restart the time counts again, because the clock by which they were recorded may be another one.
func startupEnd(setup *v1alpha1.FluxSetup, since time.Time) time.Time {
	return since.Add(time.Duration(setup.Spec.StartupTimeoutSeconds) * time.Second)
}

// writtenByFlux reports whether the Flux controller owns a field of the spec, which means that it wrote the field last.
// It returns true if there are no managedFields, which the cache leaves out.
func writtenByFlux(setup *v1alpha1.FluxSetup, field string) bool {
	for _, entry := range setup.ManagedFields {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.Manager == fluxFieldOwner && json.Unmarshal([]byte(entry.FieldsV1.String()), &fields) == nil && fields.Spec["f:"+field] != nil {
			return true
		}
	}
	return len(setup.ManagedFields) == 0
}

// setupChanged is the message for a FluxSetup whose attempt or suspend another writer has changed.
func setupChanged(setup *v1alpha1.FluxSetup, field string) string {
	return fmt.Sprintf("spec.%s of FluxSetup %s was changed by another client: what it ran is not run again", field, setup.Name)
}

// current reports whether the status of a FluxSetup describes the attempt of its spec, and not an earlier one.
func current(setup *v1alpha1.FluxSetup) bool {
	return setup.Status.Attempt == setup.Spec.Attempt
}

// suspensionObserved reports whether the FluxSetup controller has observed the suspension, and how the attempt ended until
// then.
func suspensionObserved(setup *v1alpha1.FluxSetup) bool {
	switch conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured).Reason {
	case v1alpha1.ReasonSuspending, v1alpha1.ReasonSuspended, v1alpha1.ReasonApplyFailed:
		return setup.Status.ObservedGeneration == setup.Generation
	}
	return false
}

// attemptEnded reports whether the current attempt has ended. Its terminal condition is a latch: nothing of the attempt
// is created again.
func attemptEnded(setup *v1alpha1.FluxSetup) bool {
	return current(setup) && (trueCondition(setup.Status.Conditions, v1alpha1.ConditionComplete) != nil ||
		trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed) != nil)
}

// changed reports whether another writer, such as an admission policy, has changed a field that decides how often the
// Job runs the command, or has resumed a Job that the operator has not started. When a started Job is suspended or
// scaled down, the Job controller deletes pods. It creates them again when that is reverted, or when the Job allows
// replacements.
func changed(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	desired := runsOnce(setup.Spec.Size)
	desired.Suspend = new(job.Annotations[annotationStarted] == "false")
	desired.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
	return !apiequality.Semantic.DeepEqual(decisive(&job.Spec), desired)
}

// runsOnce is the part of a Job spec that makes it run the command at most once. The index of a pod is its rank. Pods
// are never replaced: a broker cannot rejoin an instance that has lost it, so the whole attempt fails. The Job succeeds
// when rank 0 does, because the other brokers end with 0 whatever the command does.
func runsOnce(size int32) batchv1.JobSpec {
	return batchv1.JobSpec{
		Suspend:        new(true),
		Completions:    &size,
		Parallelism:    &size,
		CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimit:   new(int32(0)),
		SuccessPolicy:  &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}},
		Template:       corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
	}
}

// decisive is the part of a Job spec that decides how often the Job runs the command.
func decisive(spec *batchv1.JobSpec) batchv1.JobSpec {
	return batchv1.JobSpec{
		Suspend:              new(ptr.Deref(spec.Suspend, false)),
		Parallelism:          spec.Parallelism,
		Completions:          spec.Completions,
		CompletionMode:       spec.CompletionMode,
		SuccessPolicy:        spec.SuccessPolicy,
		BackoffLimit:         spec.BackoffLimit,
		BackoffLimitPerIndex: spec.BackoffLimitPerIndex,
		MaxFailedIndexes:     spec.MaxFailedIndexes,
		PodFailurePolicy:     spec.PodFailurePolicy,
		PodReplacementPolicy: new(ptr.Deref(spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)),
		ManagedBy:            spec.ManagedBy,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: spec.Template.Spec.RestartPolicy, Containers: restarting(&spec.Template.Spec),
		}},
	}
}

// restarting are the containers that may run the command again in the same pod, of which only that is kept: that of the
// broker, if it is restarted whatever the restartPolicy of the pod, and each whose end may restart all others.
func restarting(pod *corev1.PodSpec) []corev1.Container {
	var found []corev1.Container
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		policy, rules := ptr.Deref(container.RestartPolicy, corev1.ContainerRestartPolicyNever), container.RestartPolicyRules
		if (container.Name == containerName && (policy != corev1.ContainerRestartPolicyNever || len(rules) > 0)) ||
			slices.ContainsFunc(rules, func(rule corev1.ContainerRestartRule) bool {
				return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
			}) {
			found = append(found, corev1.Container{Name: container.Name, RestartPolicy: container.RestartPolicy, RestartPolicyRules: rules})
		}
	}
	return found
}
