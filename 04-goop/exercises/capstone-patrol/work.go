package patrol

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// run is a command that has begun.
type run struct {
	name   string
	node   types.UID
	patrol types.UID
	ended  bool
}

// jobs are those of the namespace.
func (c *cluster) jobs() []batchv1.Job {
	var jobs batchv1.JobList
	c.must("listing Jobs", c.client.List(c.b.Context(), &jobs, client.InNamespace(c.namespace)))
	return jobs.Items
}

// work is one round of the Job controller, the kubelet and the garbage collector, which do not run here.
func (c *cluster) work() {
	jobs := c.jobs()
	there := map[types.UID]bool{}
	for i := range jobs {
		there[jobs[i].UID] = jobs[i].DeletionTimestamp == nil
	}
	for uid, r := range c.runs {
		r.ended = r.ended || !there[uid]
	}
	for i := range jobs {
		job := &jobs[i]
		switch {
		case job.DeletionTimestamp != nil:
			c.collect(job)
		case finished(job) || ptr.Deref(job.Spec.Suspend, false):
		case c.runs[job.UID] == nil:
			c.begin(job)
		case !c.held[c.runs[job.UID].name]:
			c.end(job, c.failing[c.runs[job.UID].name])
		}
	}
}

// collect removes the finalizers of the garbage collector, which has no Pods to delete.
func (c *cluster) collect(job *batchv1.Job) {
	left := slices.DeleteFunc(slices.Clone(job.Finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	if len(left) < len(job.Finalizers) {
		job.Finalizers = left
		c.write(c.client.Update(c.b.Context(), job))
	}
}

// write ignores that a write met a change, or a deletion. It is repeated in the next round.
func (c *cluster) write(err error) {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.b.Fatalf("the Job controller: %v", err)
	}
}

// begin begins the command, if the node is there.
func (c *cluster) begin(job *batchv1.Job) {
	name := job.Spec.Template.Spec.NodeName
	owner := metav1.GetControllerOf(job)
	switch {
	case name == "":
		c.b.Fatalf("the Pods of a Job have no nodeName: the scheduler finds no place for them on a cordoned node")
	case owner == nil || owner.Kind != "Patrol":
		c.b.Fatalf("no Patrol controls the Job")
	}
	node := c.getNode(name)
	if node == nil {
		return
	}
	c.mu.Lock()
	cordoned := node.Spec.Unschedulable || c.uncordoned[name]
	c.mu.Unlock()
	if !cordoned {
		c.b.Fatalf("the command begins on a node that is not cordoned")
	}
	for _, r := range c.runs {
		switch {
		case r.node == node.UID && r.patrol == owner.UID:
			c.b.Fatalf("the command runs on a node a second time")
		case !r.ended && r.patrol == owner.UID:
			c.b.Fatalf("the command runs on two nodes at the same time")
		case !r.ended && r.node == node.UID:
			c.b.Fatalf("two Patrols have a command run on a node at the same time")
		}
	}
	c.b.Event("the command begins on %s", name)
	c.runs[job.UID] = &run{name: name, node: node.UID, patrol: owner.UID}
	c.begun = append(c.begun, name)
}

// end writes the status of a Job that has ended.
func (c *cluster) end(job *batchv1.Job, failed bool) {
	if node := c.getNode(c.runs[job.UID].name); node == nil || node.UID != c.runs[job.UID].node {
		return // it ends with its node, and the Job does not
	}
	if failed && (ptr.Deref(job.Spec.BackoffLimit, 6) > 0 || job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever) {
		c.b.Fatalf("the command has failed, and the Job has it run again")
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	if failed {
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		job.Status.Succeeded, job.Status.Failed, job.Status.CompletionTime = 0, 1, nil
	}
	for _, kind := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Ended", LastTransitionTime: now,
		})
	}
	err := c.client.Status().Update(c.b.Context(), job)
	c.write(err)
	if err == nil {
		c.b.Event("the command ends on %s, failed: %t", c.runs[job.UID].name, failed)
		c.runs[job.UID].ended = true
	}
}

func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed)
	})
}

// hold lets the command not end on nodes.
func (c *cluster) hold(names ...string) {
	for _, name := range names {
		c.held[name] = true
	}
}

// let lets the command end on a node.
func (c *cluster) let(name string) {
	c.b.Event("the command on %s may end", name)
	delete(c.held, name)
}

// running waits until the command has begun on a node, for the last time.
func (c *cluster) running(name string) {
	c.eventually(func() string {
		if len(c.begun) == 0 || c.begun[len(c.begun)-1] != name {
			return "the command does not begin on " + name
		}
		return ""
	})
}

// job returns the Job whose Pods are on the node a, or nil.
func (c *cluster) job() *batchv1.Job {
	jobs := c.jobs()
	if i := slices.IndexFunc(jobs, func(job batchv1.Job) bool { return job.Spec.Template.Spec.NodeName == "a" }); i >= 0 {
		return &jobs[i]
	}
	return nil
}

// removeJob deletes the Job of the node a, as a user.
func (c *cluster) removeJob() {
	job := c.job()
	if job == nil {
		c.b.Fatalf("there is no Job for the node a")
	}
	c.deleteJob(job)
}

// deleteJob deletes a Job, as a user. The Pods are deleted with it.
func (c *cluster) deleteJob(job *batchv1.Job) {
	c.b.Event("a user deletes the Job of %s", job.Spec.Template.Spec.NodeName)
	err := c.client.Delete(c.b.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	c.must("deleting a Job", client.IgnoreNotFound(err))
}

// results are what the status says, as in "a Succeeded".
func results(patrol *patrols.Patrol) []string {
	var all []string
	for _, node := range patrol.Status.Nodes {
		all = append(all, node.Name+" "+string(node.Result))
	}
	return all
}
