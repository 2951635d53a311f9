package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

// observation is what one reconciliation observed. It is all that the status is computed from.
type observation struct {
	now  time.Time
	goop *v1alpha1.Goop
	// complete is set if all could be read.
	complete bool

	// rounds are the DaemonSets of the work by their round, with the places they have by their affinity; edited are
	// those whose affinity is not as the operator writes it.
	rounds map[int]*appsv1.DaemonSet
	placed map[int]plan.Round
	edited map[int]bool
	// cleanup is the DaemonSet of the cleanup, nil if there is none, and cleanupRound the nodes that it has.
	cleanup      *appsv1.DaemonSet
	cleanupRound plan.Round

	// shards are the ConfigMaps of the record that are believed, by number, and uids those of all that there are to be:
	// it is longer than the status's while a new one is not in it yet.
	shards map[int]*corev1.ConfigMap
	uids   []string
	// found are all ConfigMaps with the name and label of a shard, and forged is the number of the one that is not
	// believed; -1 if there is none.
	found  map[int]*corev1.ConfigMap
	forged int
	// record is what the shards say. lost is the name of one that is gone, and unreadable why one that is there cannot
	// be read; else empty.
	record           *record.Record
	lost, unreadable string

	pods []corev1.Pod
	// work is what the pods of the work say, cleaning what those of the cleanup say.
	work, cleaning podSummary
	nodes          nodes
	// eligible are the nodes that may be used.
	eligible []string

	// stopping: nothing is to run but what is finished.
	stopping bool
	// hostRejected: the Goop asks for access to nodes that is not granted.
	hostRejected bool
	// plan is what DaemonSets there are to be, and unplanned what it has no place for; nil if it has one for all.
	plan      []plan.Round
	unplanned error

	// noPods: for some time nothing has been at work though something is to be.
	noPods bool
	// failure is what failed; nil if nothing did.
	failure *failure
	// requeue is when to reconcile again, 0 if an event will trigger it.
	requeue time.Duration
}

// newObservation is one of which nothing was read yet.
func newObservation(goop *v1alpha1.Goop, now time.Time) *observation {
	return &observation{
		now: now, goop: goop, forged: -1, record: record.Salvage(nil, 0),
		rounds: map[int]*appsv1.DaemonSet{}, placed: map[int]plan.Round{}, edited: map[int]bool{},
		shards: map[int]*corev1.ConfigMap{},
	}
}

func (o *observation) key() types.NamespacedName { return client.ObjectKeyFromObject(o.goop) }

// requeueAfter asks for a reconciliation after that time, 0 for none.
func (o *observation) requeueAfter(after time.Duration) {
	if after > 0 && (o.requeue == 0 || after < o.requeue) {
		o.requeue = after
	}
}

// ignoresResults tells whether the results of workers are of no use any more.
func ignoresResults(observed *observation) bool {
	return observed.goop.Ended() || !observed.goop.DeletionTimestamp.IsZero() || observed.lost != ""
}

// isDamaged tells whether the record does not say all that was recorded.
func isDamaged(observed *observation) bool { return observed.lost != "" || observed.unreadable != "" }
