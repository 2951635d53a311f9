package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// facts are what one pass sees of the world.
type facts struct {
	now  time.Time
	goop *v1alpha1.Goop

	// rounds are the DaemonSets of the work by their round, with the places they have by their affinity; changed
	// are those whose affinity is not as the operator writes it. cleanup is that of the cleanup; nil if there is
	// none.
	rounds  map[int]*appsv1.DaemonSet
	placed  map[int]plan.Round
	changed map[int]bool
	cleanup *appsv1.DaemonSet

	recordFacts

	pods  []corev1.Pod
	tale  tale
	nodes nodes
	// eligible are the nodes that may be used.
	eligible []string

	// narrow: nothing is to run but what is finished.
	narrow bool
	// hostRefused: the Goop asks for what it is not given.
	hostRefused bool
	// plan is what DaemonSets there are to be, and unplanned what it has no place for; nil if it has one for all.
	plan      []plan.Round
	unplanned error

	// noPods: for some time nothing has been at work though something is to be.
	noPods bool
	// refused is what the API server, or another object, stands in the way of; nil if nothing does.
	refused *refusedError
	// wake is when to come back, 0 if there is no need to.
	wake time.Duration
}

func (f *facts) key() types.NamespacedName { return client.ObjectKeyFromObject(f.goop) }

// comeBack asks for a pass after that time, 0 for none.
func (f *facts) comeBack(after time.Duration) {
	if after > 0 && (f.wake == 0 || after < f.wake) {
		f.wake = after
	}
}

// result is that of the pass. What was mended calls the next one by itself.
func (f *facts) result(mended bool, err error) (ctrl.Result, error) {
	if mended || err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: f.wake}, nil
}

// takeRefusal keeps a refusal, to be reported, and returns any other error.
func (f *facts) takeRefusal(err error) error {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return err
	}
	if f.refused == nil {
		f.refused = refused
	}
	f.comeBack(refusalRetry)
	return nil
}

// isRecorded tells whether a worker is known to have finished.
func (f *facts) isRecorded(place plan.Place) bool { return f.record.Finished[place] }

// look reads all that a pass depends on, from the cache; nil if there is nothing to be done.
func (r *GoopReconciler) look(ctx context.Context, key types.NamespacedName) (*facts, error) {
	var goop v1alpha1.Goop
	if err := r.Get(ctx, key, &goop); apierrors.IsNotFound(err) {
		found, err := r.shardsOf(ctx, key)
		if err != nil {
			return nil, err
		}
		return nil, r.releaseAbandoned(ctx, key, found)
	} else if err != nil {
		return nil, fmt.Errorf("reading Goop %s: %w", key.Name, err)
	}
	if !goop.DeletionTimestamp.IsZero() && !hasFinalizer(&goop) {
		return nil, nil
	}
	seen := &facts{now: r.Clock.Now(), goop: &goop}
	seen.hostRefused = asksForHost(&goop) && !r.AllowHostAccess
	seen.narrow = goop.Spec.Suspend || goop.Ended() || seen.hostRefused || !goop.DeletionTimestamp.IsZero()
	for _, read := range []func(context.Context, *facts) error{r.readDaemonSets, r.readRecord, r.readWorld} {
		if err := read(ctx, seen); err != nil {
			return nil, err
		}
	}
	seen.decide()
	return seen, nil
}

// readDaemonSets finds the DaemonSets of the Goop.
func (r *GoopReconciler) readDaemonSets(ctx context.Context, seen *facts) error {
	var list appsv1.DaemonSetList
	err := r.List(ctx, &list, client.InNamespace(seen.goop.Namespace), client.MatchingFields{goopIndex: seen.goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing DaemonSets of Goop %s: %w", seen.goop.Name, err)
	}
	seen.rounds, seen.placed, seen.changed = map[int]*appsv1.DaemonSet{}, map[int]plan.Round{}, map[int]bool{}
	for i := range list.Items {
		daemonSet := &list.Items[i]
		if !metav1.IsControlledBy(daemonSet, seen.goop) && !isOrphanOf(seen.goop, daemonSet) {
			continue
		}
		if daemonSet.Name == cleanupName(seen.goop.Name) {
			seen.cleanup = daemonSet
			continue
		}
		number, err := strconv.Atoi(daemonSet.Labels[v1alpha1.LabelRound])
		if err != nil || daemonSet.Name != roundName(seen.goop.Name, number) {
			continue
		}
		seen.rounds[number] = daemonSet
		round, ours := roundOf(number, daemonSet)
		seen.placed[number], seen.changed[number] = round, !ours
	}
	return nil
}

// isOrphanOf tells whether the garbage collector has removed the Goop from the owners of a DaemonSet, because a user
// deletes the Goop with --cascade=orphan. The work ends all the same: the cleanup waits for that.
func isOrphanOf(goop *v1alpha1.Goop, daemonSet *appsv1.DaemonSet) bool {
	return !goop.DeletionTimestamp.IsZero() && metav1.GetControllerOf(daemonSet) == nil &&
		daemonSet.Labels[labelManagedBy] == managedBy && !daemonSet.CreationTimestamp.Before(&goop.CreationTimestamp)
}

// readWorld looks at pods and nodes.
func (r *GoopReconciler) readWorld(ctx context.Context, seen *facts) (err error) {
	if seen.pods, err = r.podsOf(ctx, seen.goop); err != nil {
		return err
	}
	rounds := make(map[types.UID]int, len(seen.rounds))
	for number, daemonSet := range seen.rounds {
		rounds[daemonSet.UID] = number
	}
	if !seen.goop.DeletionTimestamp.IsZero() {
		addOrphans(rounds, seen)
	}
	seen.tale = tell(seen.pods, rounds, seen.isRecorded)
	seen.nodes, err = r.nodesFor(ctx, seen.goop)
	seen.eligible = seen.nodes.eligible(seen.tale.atWork)
	return err
}

// addOrphans adds DaemonSets that are known by their pods only: where a Goop is deleted in the foreground, they go
// first. Of their pods counts where they are, not of which round.
func addOrphans(rounds map[types.UID]int, seen *facts) {
	for i := range seen.pods {
		pod := &seen.pods[i]
		if pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork && !pod.CreationTimestamp.Before(&seen.goop.CreationTimestamp) {
			if uid := controllerOf(pod); uid != "" {
				rounds[uid] = max(rounds[uid], 0)
			}
		}
	}
}

// decide makes the plan. What has finished and is not recorded yet is not run again meanwhile.
func (f *facts) decide() {
	in := plan.Input{
		JobCount: f.goop.Spec.JobCount, Eligible: f.eligible, Narrow: f.narrow,
		Placed: map[plan.Place]bool{}, Finished: f.record.Finished, Kept: f.tale.kept,
	}
	// A pod that is kept for its log is made again if it is evicted: not with access that is not granted any more.
	if f.hostRefused {
		in.Kept = nil
	}
	if in.JobCount != nil {
		for number, round := range f.placed {
			for _, node := range round.Nodes {
				in.Placed[plan.Place{Node: node, Round: number}] = true
			}
		}
	}
	if len(f.tale.ended) > 0 {
		in.Finished = make(map[plan.Place]bool, len(f.record.Finished)+len(f.tale.ended))
		for place := range f.record.Finished {
			in.Finished[place] = true
		}
		for place := range f.tale.ended {
			in.Finished[place] = true
		}
	}
	f.plan, f.unplanned = plan.For(in)
}
