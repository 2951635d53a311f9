package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// endOrphans ends the workers that a user has orphaned, except those that DaemonSets of these rounds are about to adopt.
func (r *GoopReconciler) endOrphans(ctx context.Context, observed *observation, adopting []plan.Round) error {
	return r.adopt(ctx, observed.pods, func(pod *corev1.Pod) bool {
		number, isRound := roundOfPod(pod)
		return isRound && isWorkOf(observed.goop, pod) && observed.rounds[number] == nil &&
			!slices.ContainsFunc(adopting, func(round plan.Round) bool { return round.Number == number })
	})
}

// endOrphansOfOthers does the same for Goops of this name that no longer exist.
func (r *GoopReconciler) endOrphansOfOthers(ctx context.Context, goop types.NamespacedName, pods []corev1.Pod) error {
	if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return isOrphan(&pod) }) {
		return nil
	}
	// The cache may lack a Goop that exists.
	var live v1alpha1.Goop
	if err := r.apiReader.Get(ctx, goop, &live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Goop %s: %w", goop.Name, err)
	}
	return r.adopt(ctx, pods, func(pod *corev1.Pod) bool {
		uid := pod.Labels[v1alpha1.LabelGoopUID]
		return uid != "" && uid != string(live.UID) && pod.Labels[v1alpha1.LabelRole] != ""
	})
}

// adopt creates DaemonSets without nodes that adopt orphaned pods, one for those of each round of a Goop. The operator has no
// permission to delete pods: the controller of such a DaemonSet deletes them.
func (r *GoopReconciler) adopt(ctx context.Context, pods []corev1.Pod, isToEnd func(*corev1.Pod) bool) (failed error) {
	first := map[string]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		if !isOrphan(pod) || !isToEnd(pod) {
			continue
		}
		// The cache has only the labels that DaemonSets select by.
		key := fmt.Sprint(pod.Labels)
		if before := first[key]; before == nil || pod.Name < before.Name {
			first[key] = pod
		}
	}
	for _, key := range slices.Sorted(maps.Keys(first)) {
		desired := desiredAdopter(first[key], r.images)
		err := r.Get(ctx, client.ObjectKeyFromObject(desired), &appsv1.DaemonSet{})
		if apierrors.IsNotFound(err) {
			err = createDependent(ctx, r.Client, fieldOwner, desired)
		}
		// The controller of a namespace that is being deleted deletes the pods.
		if !errors.Is(err, errNamespaceTerminating) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// desiredAdopter is a DaemonSet without nodes that adopts the orphaned workers of a round. One of them owns it. After this pod
// the garbage collector deletes it, and with it those that have not ended.
func desiredAdopter(orphan *corev1.Pod, images Images) *appsv1.DaemonSet {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: orphan.Labels[v1alpha1.LabelGoop]}}
	labels := dependentLabels(goop)
	for _, name := range []string{v1alpha1.LabelGoopUID, v1alpha1.LabelRole, v1alpha1.LabelRound} {
		if value, found := orphan.Labels[name]; found {
			labels[name] = value
		}
	}
	pod := desiredPod(goop, nil, "", images)
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: nodeSelectorOf(plan.Round{}),
	}}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: orphan.Name, Namespace: orphan.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: orphan.Name, UID: orphan.UID}},
		},
		Spec: daemonSetSpec(labels, pod),
	}
}

// createDaemonSet creates the DaemonSet of a round or of the cleanup, and reports whether it did. While pods of a deleted
// DaemonSet are terminating on these nodes it waits: otherwise two copies of a worker would run at the same time. The
// deletion of a pod triggers a reconciliation.
func (r *GoopReconciler) createDaemonSet(ctx context.Context, observed *observation, round plan.Round, desired *appsv1.DaemonSet, ending map[string]bool) (bool, error) {
	goop := observed.goop
	if err := r.checkHostAccess(goop, round); err != nil {
		return false, err
	}
	// A DaemonSet that the Goop no longer owns is a name conflict. It is not deleted.
	found, err := findFor(ctx, r.Client, goop, &appsv1.DaemonSet{}, desired.Name)
	switch {
	case err != nil:
	case found:
		// It has appeared in the cache since the observation.
		err = fmt.Errorf("creating DaemonSet %s: %w", desired.Name, errStale)
	case observed.nodes.anyReachable(ending):
		return false, nil
	default:
		err = createDependent(ctx, r.Client, fieldOwner, desired)
	}
	// After any other error the API server may have created it nevertheless.
	if !isRejected(err) && !errors.Is(err, errNamespaceTerminating) {
		r.memory.unbegun.Delete(observed.key())
	}
	return err == nil, err
}

// placeRound writes the nodes of a round into the affinity of its DaemonSet. If work has to end although the nodes where
// it has begun could not be recorded, a label of the DaemonSet says so: see lostRounds.
func (r *GoopReconciler) placeRound(ctx context.Context, observed *observation, round plan.Round) (bool, error) {
	labels := roundLabels(observed.goop, round.Number)
	if observed.stopping && len(unrecordedNodes(observed)) > 0 {
		labels[v1alpha1.LabelUnrecorded] = startLabel(observed.record)
	}
	return r.place(ctx, observed.goop, observed.rounds[round.Number], round, labels)
}

// place writes the nodes of a round into the affinity of a DaemonSet. It also restores the labels and the update strategy
// if another writer has changed them: with a rolling update, each change of the affinity would run finished work again.
// Other fields are never changed.
func (r *GoopReconciler) place(ctx context.Context, goop *v1alpha1.Goop, live *appsv1.DaemonSet, round plan.Round, labels map[string]string) (bool, error) {
	if err := r.checkHostAccess(goop, round); err != nil {
		return false, err
	}
	stored, err := patchDependent(ctx, r.Client, fieldOwner, live, labels, map[string]any{
		"updateStrategy": map[string]any{"type": appsv1.OnDeleteDaemonSetStrategyType, "rollingUpdate": nil},
		"template": map[string]any{"spec": map[string]any{"affinity": map[string]any{
			"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": nodeSelectorOf(round)},
		}}},
	})
	if err == nil && !same(roundOf(round.Number, stored), round) {
		err = changedByAdmission("spec.template.spec.affinity", "DaemonSet "+live.Name)
	}
	return err == nil, err
}

// checkHostAccess returns an error if pods of this round would have host access that this operator does not permit. It is
// called before anything that creates pods, so that neither an edited record nor a restart without the flag gives more
// access.
func (r *GoopReconciler) checkHostAccess(goop *v1alpha1.Goop, round plan.Round) error {
	if r.allowHostAccess || !asksForHost(goop) || (!round.Everywhere && len(round.Nodes) == 0) {
		return nil
	}
	return &rejectedError{reason: v1alpha1.ReasonHostAccessNotAllowed, message: hostAccessMessage}
}
