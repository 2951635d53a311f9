package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

// Two Jobs of two pods: one succeeds by its first pod, the other one is failed by its second pod.
func TestJobs(t *testing.T) {
	few(t)
	var all story
	step := func(name string, do faults.Action, want string) {
		all = append(all, faults.Op{Name: name, Do: do}, faults.Op{Name: "after: " + name, Do: func(_ context.Context, s *faults.State) error {
			if is, err := describeJobs(s); err != nil || is != want {
				return fmt.Errorf("there is %q, and not %q: %w", is, want, err)
			}
			return nil
		}})
	}
	step("create j", createJob("j"), "j: Suspended, no pods")
	step("resume j", resumeJob("j"), "j: 0 Pending, 1 Pending")
	step("0 of j succeeds", podEnds("j-0", corev1.PodSucceeded), "j: SuccessCriteriaMet, 0 Succeeded, 1 Pending deleted")
	step("1 of j ends", podEnds("j-1", corev1.PodFailed), "j: SuccessCriteriaMet Complete, 0 Succeeded, 1 Failed deleted")
	step("create k", createJob("k"), "j: SuccessCriteriaMet Complete, 0 Succeeded, 1 Failed deleted; k: Suspended, no pods")
	step("delete j", faults.Delete[batchv1.Job]("j", metav1.DeletePropagationBackground), "k: Suspended, no pods")
	step("resume k", resumeJob("k"), "k: 0 Pending, 1 Pending")
	step("1 of k fails", podEnds("k-1", corev1.PodFailed), "k: FailureTarget, 0 Pending deleted, 1 Failed")
	step("0 of k ends", podEnds("k-0", corev1.PodFailed), "k: FailureTarget Failed, 0 Failed deleted, 1 Failed")
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{Scheme: clientgoscheme.Scheme, Setup: onlooker},
		Kinds:    []client.Object{&corev1.Pod{}, &batchv1.Job{}},
		Actors:   []faults.Actor{actors.Jobs{}, actors.GarbageCollector{}},
		Story:    all,
	})
}

func createJob(name string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return s.Client.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
			Spec: batchv1.JobSpec{
				Suspend: new(true), Completions: new(int32(2)), Parallelism: new(int32(2)), BackoffLimit: new(int32(0)),
				CompletionMode: new(batchv1.IndexedCompletion),
				SuccessPolicy:  &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "work"}},
				}},
			},
		})
	}
}

func resumeJob(name string) faults.Action {
	return faults.Edit(name, func(job *batchv1.Job) { job.Spec.Suspend = new(false) })
}

// podEnds ends the pod whose name begins so, as its kubelet does.
func podEnds(prefix string, phase corev1.PodPhase) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		pods, err := faults.All[corev1.Pod](s)
		for _, pod := range pods {
			if strings.HasPrefix(pod.Name, prefix) {
				pod.Status.Phase = phase
				return s.Client.Status().Update(ctx, pod)
			}
		}
		return err
	}
}

// describeJobs lists each Job with its true conditions, and its pods by their index.
func describeJobs(s *faults.State) (string, error) {
	jobs, err := faults.All[batchv1.Job](s)
	if err != nil {
		return "", err
	}
	pods, err := faults.All[corev1.Pod](s)
	var all []string
	for _, job := range jobs {
		var conditions, own []string
		for _, one := range job.Status.Conditions {
			if one.Status == corev1.ConditionTrue {
				conditions = append(conditions, string(one.Type))
			}
		}
		for _, pod := range pods {
			text := fmt.Sprintf("%s %s", pod.Annotations[batchv1.JobCompletionIndexAnnotation], pod.Status.Phase)
			if pod.DeletionTimestamp != nil {
				text += " deleted"
			}
			if metav1.IsControlledBy(pod, job) {
				own = append(own, text)
			}
		}
		slices.Sort(own)
		if len(own) == 0 {
			own = []string{"no pods"}
		}
		if len(conditions) > 0 {
			own = append([]string{strings.Join(conditions, " ")}, own...)
		}
		all = append(all, job.Name+": "+strings.Join(own, ", "))
	}
	slices.Sort(all)
	return strings.Join(all, "; "), err
}
