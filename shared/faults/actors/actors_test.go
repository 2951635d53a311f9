package actors_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

// onlooker is an operator that only watches what the actors write.
func onlooker(_ context.Context, mgr ctrl.Manager, env faults.Env) error {
	return ctrl.NewControllerManagedBy(mgr).Named("onlooker").For(&appsv1.DaemonSet{}).
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}).Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}).
		WithOptions(env.Queue).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
}

// end ends the init container "first" at once, and others on a node that is labelled so.
func end(s *faults.State, pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	node, err := faults.Find[corev1.Node](s, pod.Spec.NodeName)
	if container == "first" || err == nil && node.Labels["ends"] != "" {
		return &corev1.ContainerStateTerminated{Reason: "Completed"}
	}
	return nil
}

// story is what happens to a DaemonSet. What each operation comes to is an operation too, which fails if it does not.
type story []faults.Op

func (all *story) step(name string, do faults.Action, state ...string) {
	*all = append(*all, faults.Op{Name: name, Do: do}, faults.Op{Name: "after: " + name, Do: func(_ context.Context, s *faults.State) error {
		is, err := describe(s)
		if err == nil && !slices.Equal(is, state) {
			err = fmt.Errorf("there is %q, and not %q", is, state)
		}
		return err
	}})
}

// there is a step after which so many objects are there.
func (all *story) there(name string, do faults.Action, want int) {
	*all = append(*all, faults.Op{Name: name, Do: do}, faults.Op{Name: "after: " + name, Do: func(_ context.Context, s *faults.State) error {
		return count(s, want)
	}})
}

func count(s *faults.State, want int) error {
	if is := len(faults.Everything(s)); is != want {
		return fmt.Errorf("there are %d objects, and not %d", is, want)
	}
	return nil
}

// few has few schedules run: the stories are about the actors.
func few(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"seeds": "10", "for": "5s"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDaemonSetsNodesAndKubelets(t *testing.T) {
	few(t)
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{Scheme: clientgoscheme.Scheme, Setup: onlooker},
		Kinds:    []client.Object{&corev1.Pod{}, &appsv1.DaemonSet{}},
		Actors:   []faults.Actor{actors.Nodes{}, actors.DaemonSets{}, actors.Kubelet{End: end}, actors.GarbageCollector{}},
		Story:    storyOfADaemonSet(),
		Invariants: []faults.Invariant{{Name: "the status is current", Check: func(_ context.Context, s *faults.State) error {
			sets, err := faults.All[appsv1.DaemonSet](s)
			for _, d := range sets {
				is := d.Status
				if s.Steady && (is.ObservedGeneration != d.Generation || is.CurrentNumberScheduled != is.DesiredNumberScheduled) {
					return fmt.Errorf("%+v of generation %d", is, d.Generation)
				}
			}
			return err
		}}},
	})
}

func storyOfADaemonSet() story {
	var all story
	all.step("create d", create)
	all.step("a joins", actors.Join("a"), "a: d-1 Pending")
	all.step("b joins", actors.Join("b"), "a: d-1 Pending", "b: d-2 Pending")
	all.step("work ends on a", node("a", func(n *corev1.Node) { n.Labels = map[string]string{"ends": "yes"} }), "a: d-1 Running", "b: d-2 Pending")
	all.step("b has a taint", node("b", taint(corev1.TaintEffectNoSchedule)), "a: d-1 Running", "b: d-2 Pending")
	all.step("and ends what runs", node("b", taint(corev1.TaintEffectNoExecute)), "a: d-1 Running")
	all.step("it has none", node("b", func(n *corev1.Node) { n.Spec.Taints = nil }), "a: d-1 Running", "b: d-3 Pending")
	all.step("b is unreachable", actors.Report("b", corev1.ConditionUnknown), "a: d-1 Running", "b: d-3 Pending")
	all.step("d leaves b", set(notOn("b")), "a: d-1 Running", "b: d-3 Pending, deleted")
	all.step("b is reachable", actors.Report("b", corev1.ConditionTrue), "a: d-1 Running")
	all.step("d is everywhere", set(notOn()), "a: d-1 Running", "b: d-4 Pending")
	all.step("another pod of a", relabel("a", "other"), "a: d-1 Running, orphan", "a: d-5 Running", "b: d-4 Pending")
	all.step("it is one of d again", relabel("a", "d"), "a: d-1 Running", "b: d-4 Pending")
	all.step("pods are replaced", set(func(d *appsv1.DaemonSet) {
		d.Spec.UpdateStrategy.Type, d.Spec.Template.Spec.Containers[0].Image = appsv1.RollingUpdateDaemonSetStrategyType, "other"
	}), "a: d-6 Running", "b: d-7 Pending")
	all.step("b leaves", actors.Leave("b"), "a: d-6 Running")
	all.step("delete d", faults.Delete[appsv1.DaemonSet]("d", metav1.DeletePropagationBackground))
	return all
}

func node(name string, mutate func(*corev1.Node)) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return faults.Change(ctx, s, s.ClusterName(name), mutate)
	}
}

func set(mutate func(*appsv1.DaemonSet)) faults.Action { return faults.Edit("d", mutate) }

// describe lists the pods by node: their numbers, in the order in which they were created, and phases.
func describe(s *faults.State) ([]string, error) {
	pods, err := faults.All[corev1.Pod](s)
	var all, names []string
	for _, w := range s.Writes() {
		if w.Resource.Resource == "pods" && w.Before == nil {
			names = append(names, w.Name)
		}
	}
	for _, pod := range pods {
		node := strings.TrimPrefix(pod.Spec.NodeName, s.ClusterName(""))
		text := fmt.Sprintf("%s: d-%d %s", node, 1+slices.Index(names, pod.Name), pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			text += ", deleted"
		}
		if metav1.GetControllerOf(pod) == nil {
			text += ", orphan"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all, err
}

func create(ctx context.Context, s *faults.State) error {
	labels := map[string]string{"app": "d"}
	return s.Client.Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: s.Namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "first", Image: "first"}, {Name: "second", Image: "second"}},
				Containers:     []corev1.Container{{Name: "pause", Image: "pause"}},
			}},
		},
	})
}

func taint(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: effect}} }
}

// notOn is an affinity for all nodes but some, in the namespace of the DaemonSet.
func notOn(names ...string) func(*appsv1.DaemonSet) {
	return func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Affinity = nil
		for _, name := range names {
			term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{(&faults.State{Namespace: d.Namespace}).ClusterName(name)}},
			}}
			d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
			}}
		}
	}
}

// relabel labels the oldest pod of a node.
func relabel(node, app string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		pods, err := faults.All[corev1.Pod](s)
		for _, w := range s.Writes() {
			for _, pod := range pods {
				if pod.Name == w.Name && pod.Spec.NodeName == s.ClusterName(node) {
					pod.Labels["app"] = app
					return s.Client.Update(ctx, pod)
				}
			}
		}
		return err
	}
}
