package controller

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/04-goop/internal/worker"
)

// observation is the observed state of one reconciliation. The status is computed from it alone.
type observation struct {
	now  time.Time
	goop *v1alpha1.Goop
	// complete is set if everything could be read.
	complete bool

	// rounds are the DaemonSets of the work by round number, and placed are their nodes according to their affinity.
	rounds map[int]*appsv1.DaemonSet
	placed map[int]plan.Round
	// cleanup is the DaemonSet of the cleanup, nil if there is none. cleanupRound has its nodes.
	cleanup      *appsv1.DaemonSet
	cleanupRound plan.Round

	// shards are the trusted ConfigMaps of the record, by number. uids are the uids of all shards, including those that are
	// lost. It is longer than the list in the status while a new shard is not in the status yet.
	shards map[int]*corev1.ConfigMap
	uids   []string
	// found are all ConfigMaps with the name and label of a shard.
	found map[int]*corev1.ConfigMap
	// record is what is valid in the shards. damage is nil if that is the whole record, or if there is none yet; else its reason
	// is RecordLost if a shard no longer exists, and RecordUnreadable if an existing one cannot be read.
	record *record.Record
	damage *failure

	// unbegun: no DaemonSet of the work was ever created.
	unbegun bool

	pods []corev1.Pod
	// work summarizes the pods of the work, and cleaning those of the cleanup.
	work, cleaning podSummary
	nodes          nodes
	// eligible are the nodes on which workers may run.
	eligible []string

	// stopping: only pods of finished workers may stay.
	stopping bool
	// hostRejected: the Goop requests host access that is not permitted.
	hostRejected bool
	// plan lists the desired DaemonSets. For a Goop that is being deleted, these are the DaemonSets that it would have
	// otherwise. unplanned is the error for workers without a place; nil if every worker has one.
	plan      []plan.Round
	unplanned error
	// losing: DaemonSets have nodes that the plan does not have, so that pods are about to be deleted.
	losing bool

	// noPods: work has to be done, and for some time there has been no pod for it.
	noPods bool
	// failure is what failed; nil if nothing did.
	failure *failure
	// requeue is the time until the next reconciliation; 0 if an event will trigger it.
	requeue time.Duration
}

// newObservation returns an observation without any observed state.
func newObservation(goop *v1alpha1.Goop, now time.Time) *observation {
	empty, _ := record.Read(nil, 0)
	return &observation{
		now: now, goop: goop, record: empty,
		rounds: map[int]*appsv1.DaemonSet{}, placed: map[int]plan.Round{},
		shards: map[int]*corev1.ConfigMap{},
	}
}

func (o *observation) key() types.NamespacedName { return client.ObjectKeyFromObject(o.goop) }

func (o *observation) request() ctrl.Request { return ctrl.Request{NamespacedName: o.key()} }

// requeueAfter requests a reconciliation after that time; 0 requests none. The shortest time counts.
func (o *observation) requeueAfter(after time.Duration) {
	if after > 0 && (o.requeue == 0 || after < o.requeue) {
		o.requeue = after
	}
}

// unrecordedResults returns the results of workers that are to be recorded. Those of workers that finish after the end of the
// work do not count, and nothing is added to what a damaged record has of them.
func unrecordedResults(observed *observation) map[plan.Place]worker.Record {
	if isOver(observed.goop) || observed.damage != nil {
		return nil
	}
	return observed.work.ended
}

// isOver reports whether no more work will begin: the Goop has ended, or is being deleted.
func isOver(goop *v1alpha1.Goop) bool { return goop.Ended() || !goop.DeletionTimestamp.IsZero() }

func hasFinalizer(goop *v1alpha1.Goop) bool {
	return controllerutil.ContainsFinalizer(goop, v1alpha1.CleanupFinalizer)
}

// isConcluded reports whether the status has the outcome of the cleanup.
func isConcluded(goop *v1alpha1.Goop) bool {
	reason := conditionOf(goop.Status.Conditions, v1alpha1.ConditionRunning).Reason
	return reason == v1alpha1.ReasonCleanedUp || reason == v1alpha1.ReasonCleanupIncomplete
}

// unrecordedNodes returns the nodes, sorted, that the record lacks and that have to be cleaned up: those where pods show that
// work has begun, or may begin at any moment if it is about to be deleted. If the record or the DaemonSets are not complete, it
// also returns those where work may have begun according to everything else. If in doubt it includes a node.
func unrecordedNodes(observed *observation) []string {
	if len(observed.goop.Spec.CleanupCmd) == 0 {
		return nil
	}
	nodes := slices.Collect(maps.Keys(observed.work.begun))
	if observed.stopping || observed.losing {
		nodes = slices.AppendSeq(nodes, maps.Keys(observed.work.mayBegin))
	}
	damaged := observed.damage != nil
	gone, deleting := lostRounds(observed)
	switch {
	// The affinity of the cleanup's DaemonSet lists the nodes where the cleanup has not ended. Unless the record cannot be
	// written, it states before the cleanup that the work has ended.
	case observed.cleanup != nil && (damaged || !observed.record.Started.IsZero()) && !observed.cleanupRound.Everywhere:
		nodes = append(nodes, observed.cleanupRound.Nodes...)
	case observed.cleanup == nil && (damaged || gone || deleting):
		nodes = append(nodes, nodesWithTraces(observed)...)
		if damaged || gone || observed.goop.Spec.JobCount == nil {
			nodes = append(nodes, observed.eligible...)
		}
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(node string) bool { return observed.record.Begun[node] })
}

// nodesWithTraces returns the nodes that appear in DaemonSets, pods and status.
func nodesWithTraces(observed *observation) []string {
	var nodes []string
	for _, round := range observed.placed {
		if !round.Everywhere {
			nodes = append(nodes, round.Nodes...)
		}
	}
	for _, failure := range observed.goop.Status.Failures {
		nodes = append(nodes, failure.Node)
	}
	for i := range observed.pods {
		if node := observed.pods[i].Spec.NodeName; node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// lostRounds reports whether DaemonSets of the work are gone, and whether one is being deleted. It is about Goops whose
// work has to end and whose record does not state that it has. In a foreground deletion the garbage collector deletes
// these DaemonSets, also while the operator is down, and the operator itself deletes those with host access even if it
// cannot record that. Without them, the nodes where work began after the last write of the record are unknown. They are also
// unknown if a DaemonSet has lost nodes that could not be recorded since the work was started or resumed.
func lostRounds(observed *observation) (gone, deleting bool) {
	for _, daemonSet := range observed.rounds {
		gone = gone || daemonSet.Labels[v1alpha1.LabelUnrecorded] == startLabel(observed.record)
		deleting = deleting || isBeingDeleted(daemonSet)
	}
	ended := observed.goop.Ended() && observed.goop.DeletionTimestamp.IsZero()
	if !observed.stopping || ended || observed.record.Started.IsZero() || observed.unbegun {
		return gone, false
	}
	for _, round := range observed.plan {
		// A round after the last existing one may never have been created.
		created := deleting || round.Number < len(observed.rounds)
		gone = gone || (observed.rounds[round.Number] == nil && created)
	}
	return gone || len(observed.rounds) == 0, deleting
}

// isUntraceable reports whether work may have begun, and neither the record nor anything else says where.
func isUntraceable(observed *observation) bool {
	gone, _ := lostRounds(observed)
	return gone && len(observed.record.Begun) == 0
}

// startLabel is the start of the work as the value of a label.
func startLabel(r *record.Record) string { return r.Started.Format("20060102T150405Z") }

// isLost reports whether a part of the record no longer exists.
func isLost(observed *observation) bool {
	return observed.damage != nil && observed.damage.reason == v1alpha1.ReasonRecordLost
}

// isForged reports whether there is a shard that lists nodes although its uid is not in the status.
func isForged(observed *observation) bool {
	next := observed.found[len(observed.uids)]
	return next != nil && metav1.IsControlledBy(next, observed.goop) && record.NamesNodes(next.Data[record.Key])
}

// isObserved reports whether the DaemonSet controller has acted on the current spec of a DaemonSet. Until then it may still
// create pods for an earlier one, so that the absence of pods proves nothing. It neither creates pods for a DaemonSet that
// is being deleted nor writes its status.
func isObserved(daemonSet *appsv1.DaemonSet) bool {
	return isBeingDeleted(daemonSet) || daemonSet.Status.ObservedGeneration >= daemonSet.Generation
}

// mayCreatePods reports whether the DaemonSet controller may still create pods for work that has to end: a DaemonSet has
// nodes that the plan does not have, or its controller has not observed that it lost them.
func mayCreatePods(observed *observation) bool {
	for _, daemonSet := range observed.rounds {
		if !isObserved(daemonSet) {
			return true
		}
	}
	return observed.losing
}

func isBeingDeleted(daemonSet *appsv1.DaemonSet) bool { return !daemonSet.DeletionTimestamp.IsZero() }
