package patrol

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// state is a Patrol, its Jobs, and all nodes.
type state struct {
	patrol *patrols.Patrol
	jobs   []batchv1.Job
	nodes  []corev1.Node
	// running is the Job whose result is not in the status yet.
	running *batchv1.Job
}

func (r *reconciler) read(ctx context.Context, from client.Reader, key client.ObjectKey) (*state, error) {
	s := &state{patrol: &patrols.Patrol{}}
	if err := from.Get(ctx, key, s.patrol); err != nil {
		return nil, err
	}
	var jobs batchv1.JobList
	if err := from.List(ctx, &jobs, client.InNamespace(r.namespace)); err != nil {
		return nil, err
	}
	s.jobs = slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, s.patrol) })
	var nodes corev1.NodeList
	if err := from.List(ctx, &nodes); err != nil {
		return nil, err
	}
	s.nodes = nodes.Items
	return s, nil
}

// ended is true for ever once it is.
func (s *state) ended() bool {
	return apimeta.IsStatusConditionTrue(s.patrol.Status.Conditions, patrols.ConditionComplete) ||
		apimeta.IsStatusConditionTrue(s.patrol.Status.Conditions, patrols.ConditionFailed)
}

func (s *state) done(uid types.UID) bool {
	return slices.ContainsFunc(s.patrol.Status.Nodes, func(node patrols.Node) bool { return node.UID == uid })
}

// cordoned says whether the Patrol has cordoned the node.
func (s *state) cordoned(node *corev1.Node) bool {
	return node.Annotations[patrols.AnnotationCordoned] == string(s.patrol.UID)
}

// leftOver returns a node that the Patrol has cordoned, and whose turn it is not, or nil.
func (s *state) leftOver(current *corev1.Node) *corev1.Node {
	for i := range s.nodes {
		if node := &s.nodes[i]; s.cordoned(node) && (current == nil || node.UID != current.UID) {
			return node
		}
	}
	return nil
}

// node returns the node with a UID, or nil if it is gone.
func (s *state) node(uid types.UID) *corev1.Node {
	if i := slices.IndexFunc(s.nodes, func(node corev1.Node) bool { return node.UID == uid }); i >= 0 {
		return &s.nodes[i]
	}
	return nil
}

// choose returns the node whose turn it is, or nil, and the reason of the condition Complete.
func (s *state) choose() (*corev1.Node, string) {
	failures := int32(0)
	for _, node := range s.patrol.Status.Nodes {
		if node.Result == patrols.Failed {
			failures++
		}
	}
	reason := patrols.ReasonRunning
	if s.patrol.Spec.Suspend {
		reason = patrols.ReasonSuspended
	}
	switch {
	case s.running != nil:
		return s.node(nodeOf(s.running)), reason
	case !s.patrol.DeletionTimestamp.IsZero() || s.ended():
		return nil, ""
	case failures > s.patrol.Spec.MaxFailures:
		return nil, patrols.ReasonBudgetExceeded
	}
	return s.begin(reason)
}

// begin returns the node that is next.
func (s *state) begin(reason string) (*corev1.Node, string) {
	selector := labels.SelectorFromSet(s.patrol.Spec.NodeSelector)
	var left, free []*corev1.Node
	for i := range s.nodes {
		node := &s.nodes[i]
		if !selector.Matches(labels.Set(node.Labels)) || s.done(node.UID) {
			continue
		}
		left = append(left, node)
		if node.Annotations[patrols.AnnotationCordoned] == "" || s.cordoned(node) {
			free = append(free, node)
		}
	}
	switch {
	case len(left) == 0:
		return nil, patrols.ReasonDone
	case s.patrol.Spec.Suspend || len(free) == 0:
		return nil, reason
	}
	return slices.MinFunc(free, s.before), reason
}

// before compares two nodes. The one that is cordoned already stays the first.
func (s *state) before(a, b *corev1.Node) int {
	if s.cordoned(a) != s.cordoned(b) {
		if s.cordoned(a) {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(a.Name, b.Name))
}

func priority(node *corev1.Node) int {
	n, err := strconv.Atoi(node.Annotations[patrols.AnnotationPriority])
	if err != nil {
		return 0
	}
	return n
}
