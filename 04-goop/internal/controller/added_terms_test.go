package controller

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// addsTo is what an admission policy makes of the terms of an affinity.
type addsTo func([]corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm

// toEachTerm requires a label that the nodes of a test have.
func toEachTerm(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	if len(terms) == 0 {
		terms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range terms {
		label := corev1.NodeSelectorRequirement{Key: testLabel, Operator: corev1.NodeSelectorOpExists}
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, label)
	}
	return terms
}

// anotherTerm lets in the nodes with a label that no node has. Where there is no term, it would let in only those.
func anotherTerm(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	if len(terms) == 0 {
		return nil
	}
	return append(terms, corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "example.com/more", Operator: corev1.NodeSelectorOpExists}},
	})
}

// addingTerms replaces the reconciler by one whose DaemonSets an admission policy changes on every write.
func (f *goopTestEnv) addingTerms(add addsTo) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if daemonSet, ok := obj.(*appsv1.DaemonSet); ok {
				pod := &daemonSet.Spec.Template.Spec
				if terms := add(requiredTerms(pod.Affinity)); terms != nil {
					pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
					}}
				}
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := obj.(*appsv1.DaemonSet); !ok {
				return c.Patch(ctx, obj, patch, opts...)
			}
			body, err := patch.Data(obj)
			f.Expect(err).NotTo(HaveOccurred())
			var change struct {
				Metadata map[string]any       `json:"metadata"`
				Spec     appsv1.DaemonSetSpec `json:"spec"`
			}
			f.Expect(json.Unmarshal(body, &change)).To(Succeed())
			var selector any
			if terms := add(requiredTerms(change.Spec.Template.Spec.Affinity)); terms != nil {
				selector = corev1.NodeSelector{NodeSelectorTerms: terms}
			}
			affinity := map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": selector}}
			template := map[string]any{"spec": map[string]any{"affinity": affinity}}
			body, err = json.Marshal(map[string]any{"metadata": change.Metadata, "spec": map[string]any{"template": template}})
			f.Expect(err).NotTo(HaveOccurred())
			return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), opts...)
		},
	})
}

// An admission policy adds to the affinity of each DaemonSet. Work begins, is suspended and resumed all the same, what has
// finished does not run again, and nothing is written in steady state.
func TestWhatOthersAddToAnAffinityIsNoDrift(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]addsTo{"to each term": toEachTerm, "another term": anotherTerm} {
		for work, spec := range map[string]func(*v1alpha1.GoopSpec){"everywhere": func(*v1alpha1.GoopSpec) {}, "with a jobCount": workers(2)} {
			t.Run(name+", "+work, func(t *testing.T) {
				t.Parallel()
				f := newGoopTestEnv(t, "a", "b")
				f.addingTerms(add)
				f.create(spec)
				f.runs("a/0", "b/0")
				f.ends(0, "", "a/0")
				f.removePod(f.pod("a/0"))
				f.reconciles(1)
				f.settle()
				f.Expect(f.places()).To(Equal([]string{"b/0"}))
				f.change(suspended)
				f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
				f.Expect(f.places()).To(BeEmpty())
				f.change(resumed)
				f.runs("b/0")
				f.expectRunning(v1alpha1.ReasonWorking)
				before := f.requests.written()
				f.reconciles(3)
				f.Expect(f.requests.written()).To(Equal(before))
				f.ends(0, "", "b/0")
				f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
				f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 2}))
			})
		}
	}
}

// Only our own terms say where the work is.
func TestRoundOfAnAffinityThatOthersHaveChanged(t *testing.T) {
	t.Parallel()
	all, none, some := plan.Round{Everywhere: true}, plan.Round{}, plan.Round{Nodes: []string{"a", "b"}}
	allBut := plan.Round{Everywhere: true, Nodes: []string{"a", "b"}}
	for name, test := range map[string]struct {
		round  plan.Round
		change addsTo
		want   plan.Round
	}{
		"to all nodes":       {all, toEachTerm, all},
		"to none":            {none, toEachTerm, none},
		"to some":            {some, toEachTerm, some},
		"to all but some":    {allBut, toEachTerm, allBut},
		"a term, to none":    {none, anotherTerm, none},
		"a term, to some":    {some, anotherTerm, some},
		"a term, to all but": {allBut, anotherTerm, allBut},
		"another order": {some, func(t []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return []corev1.NodeSelectorTerm{t[1], t[0], t[1]}
		}, some},
		"a node less": {some, func(t []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return t[:1]
		}, plan.Round{Nodes: []string{"a"}}},
		"a term instead of ours": {some, func([]corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return toEachTerm(nil)
		}, all},
		"all but one as well": {some, func(t []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return append(t, nodeSelectorOf(plan.Round{Everywhere: true, Nodes: []string{"a"}}).NodeSelectorTerms...)
		}, all},
		"both at once": {some, func(t []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			t[0].MatchFields = append(t[0].MatchFields, t[1].MatchFields...)
			return t[:1]
		}, all},
	} {
		daemonSet := desiredRound(aGoop(), test.round, testImages)
		affinity := &corev1.NodeAffinity{}
		if terms := test.change(requiredTerms(daemonSet.Spec.Template.Spec.Affinity)); terms != nil {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
		}
		daemonSet.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
		NewWithT(t).Expect(roundOf(0, daemonSet)).To(Equal(test.want), name)
	}
}
