package patrol

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// annotationNode of a Job is the UID of its node.
const annotationNode = "patrol.example.com/node-uid"

func nodeOf(job *batchv1.Job) types.UID { return types.UID(job.Annotations[annotationNode]) }

// create creates the Job of a node. There is one of that name as long as the result is not in the status: it has the finalizer.
func (r *reconciler) create(patrol *patrols.Patrol, node *corev1.Node) action {
	return func(ctx context.Context) error {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: r.namespace, Name: "patrol-" + string(node.UID) + "-" + string(patrol.UID[:8]), Finalizers: []string{finalizer},
				Annotations: map[string]string{annotationNode: string(node.UID)},
			},
			Spec: batchv1.JobSpec{
				BackoffLimit: new(int32(0)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					NodeName:      node.Name, // the scheduler would place nothing there
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "work", Image: patrol.Spec.Image, Command: patrol.Spec.Command}},
				}},
			},
		}
		if err := controllerutil.SetControllerReference(patrol, job, r.Scheme()); err != nil {
			return err
		}
		return r.Create(ctx, job)
	}
}

// nextOfJobs returns what is to be done about a Job, or nil. It finds the one that is running.
func (r *reconciler) nextOfJobs(s *state) action {
	for i := range s.jobs {
		job := &s.jobs[i]
		result, finished := resultOf(job)
		held := controllerutil.ContainsFinalizer(job, finalizer)
		switch {
		case s.done(nodeOf(job)):
			if held {
				return r.release(job)
			}
		case !s.patrol.DeletionTimestamp.IsZero() || !finished && s.node(nodeOf(job)) == nil:
			if job.DeletionTimestamp.IsZero() {
				return r.delete(job)
			}
			if held {
				return r.release(job)
			}
		case finished || !job.DeletionTimestamp.IsZero():
			return r.record(s.patrol, job, result)
		default:
			s.running = job
		}
	}
	return nil
}

// resultOf returns the result of a Job, and whether it has finished. One that is deleted before has failed.
func resultOf(job *batchv1.Job) (patrols.Result, bool) {
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete:
			return patrols.Succeeded, true
		case condition.Type == batchv1.JobFailed:
			return patrols.Failed, true
		}
	}
	return patrols.Failed, false
}

func (r *reconciler) delete(job *batchv1.Job) action {
	return func(ctx context.Context) error {
		return r.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}

// writeStatus writes a change of the status, if the Patrol has not changed since it was read.
func (r *reconciler) writeStatus(patrol *patrols.Patrol, change func()) action {
	return func(ctx context.Context) error {
		before := client.MergeFromWithOptions(patrol.DeepCopy(), client.MergeFromWithOptimisticLock{})
		change()
		return r.Status().Patch(ctx, patrol, before)
	}
}

// record adds a node to those that are done.
func (r *reconciler) record(patrol *patrols.Patrol, job *batchv1.Job, result patrols.Result) action {
	return r.writeStatus(patrol, func() {
		patrol.Status.Nodes = append(patrol.Status.Nodes,
			patrols.Node{Name: job.Spec.Template.Spec.NodeName, UID: nodeOf(job), Result: result})
	})
}

// reported says whether the conditions are what they should be. Those of a Patrol that has ended are.
func (s *state) reported(reason string) bool {
	complete := apimeta.FindStatusCondition(s.patrol.Status.Conditions, patrols.ConditionComplete)
	return s.ended() || complete != nil && complete.Reason == reason && complete.ObservedGeneration == s.patrol.Generation
}

// report writes the conditions.
func (r *reconciler) report(patrol *patrols.Patrol, reason string) action {
	return r.writeStatus(patrol, func() {
		set := func(kind string, isTrue bool) {
			condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: patrol.Generation}
			if isTrue {
				condition.Status = metav1.ConditionTrue
			}
			apimeta.SetStatusCondition(&patrol.Status.Conditions, condition)
		}
		set(patrols.ConditionComplete, reason == patrols.ReasonDone)
		if reason == patrols.ReasonBudgetExceeded {
			set(patrols.ConditionFailed, true)
		}
	})
}
