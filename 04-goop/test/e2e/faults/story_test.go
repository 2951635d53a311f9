package faults

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/controller"
	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

func setup(ctx context.Context, mgr ctrl.Manager, env faults.Env) error {
	images := controller.Images{Operator: "example.com/goop:test", Worker: "busybox"}
	return controller.NewGoopReconciler(mgr.GetClient(), mgr.GetAPIReader(), env.Recorder, env.Clock, images, false).SetupWithManager(ctx, mgr, env.Queue)
}

// exitCode is an annotation of a node: work ends there, with that exit code. Without it, it runs.
const exitCode = "exit-code"

// end is how the init containers of a worker end.
func end(s *faults.State, pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	node, err := faults.Find[corev1.Node](s, pod.Spec.NodeName)
	if err != nil || node == nil {
		return nil
	}
	code, ends := node.Annotations[exitCode]
	switch {
	case container != v1alpha1.WorkContainer:
		return &corev1.ContainerStateTerminated{Reason: "Completed"}
	case ends && pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork:
		return &corev1.ContainerStateTerminated{Reason: "Completed", Message: fmt.Sprintf(`{"exitCode":%s,"tries":1,"output":"the end"}`, code)}
	case pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleCleanup:
		return &corev1.ContainerStateTerminated{Reason: "Completed", Message: `{"exitCode":0,"tries":1}`}
	}
	return nil
}

// One Goop does its work on every node, also on one that joins, and cleans up after it. Another one has two workers on a
// node.
var story = []faults.Op{
	{Name: "nodes join", Do: faults.Sequence(actors.Join("a"), actors.Join("b"))},
	{Name: "create g", Do: faults.IgnoreExisting(create("g"))}, // others may have created it
	{Name: "work ends on a", Do: endsOn("a", "0")},
	{Name: "c joins", Do: actors.Join("c")},
	{Name: "suspend g", Do: suspend("g", true)},
	{Name: "resume g", Do: suspend("g", false)},
	{Name: "work ends on b and c", Do: faults.Sequence(endsOn("b", "3"), endsOn("c", "0"))},
	{Name: "create n", Do: create("n")},
	{Name: "delete g", Do: faults.Delete[v1alpha1.Goop]("g", metav1.DeletePropagationBackground)},
}

// What other users and controllers do.
var anytime = []faults.Op{
	{Name: "evict the work on b", Do: removePod("g-0", "b")},
	{Name: "delete g's DaemonSet", Do: faults.Delete[appsv1.DaemonSet]("g-0", metav1.DeletePropagationBackground)},
	{Name: "delete g", Do: faults.Delete[v1alpha1.Goop]("g", metav1.DeletePropagationBackground)},
	{Name: "delete g in the foreground", Do: faults.Delete[v1alpha1.Goop]("g", metav1.DeletePropagationForeground)},
	{Name: "delete g and orphan", Do: faults.Delete[v1alpha1.Goop]("g", metav1.DeletePropagationOrphan)},
	{Name: "recreate g", Do: faults.Sequence(faults.Delete[v1alpha1.Goop]("g", metav1.DeletePropagationBackground), faults.IgnoreExisting(create("g")))},
	{Name: "suspend g", Do: suspend("g", true)},
	{Name: "strip g's DaemonSet", Do: faults.Edit("g-0", func(d *appsv1.DaemonSet) { d.Labels = nil })},
	{Name: "orphan g's DaemonSet", Do: faults.Edit("g-0", func(d *appsv1.DaemonSet) { d.OwnerReferences = nil })},
	{Name: "place g's work everywhere", Do: faults.Edit("g-0", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Affinity = nil })},
	{Name: "relabel the pods of g", Do: relabel},
	{Name: "take g's names", Do: faults.IgnoreExisting(faults.Sequence(take("g-0"), take("g-cleanup")))},
	{Name: "release g's names", Do: faults.Sequence(faults.DeleteUnowned[appsv1.DaemonSet]("g-0"), faults.DeleteUnowned[appsv1.DaemonSet]("g-cleanup"))},
	{Name: "b leaves", Do: actors.Leave("b")},
	{Name: "b is unreachable", Do: actors.Report("b", corev1.ConditionUnknown)},
	{Name: "b is reachable", Do: actors.Report("b", corev1.ConditionTrue)},
}

// create creates a Goop: g with a cleanup, or n with a number of workers.
func create(name string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace}, Spec: v1alpha1.GoopSpec{Cmd: []string{"work"}}}
		if name == "n" {
			goop.Spec.JobCount = new(int32(4))
		} else {
			goop.Spec.CleanupCmd, goop.Spec.CleanupTimeoutSeconds = []string{"clean"}, 600
		}
		return s.Client.Create(ctx, goop)
	}
}

func endsOn(node, code string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return client.IgnoreNotFound(faults.Change(ctx, s, s.ClusterName(node), func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, exitCode, code) }))
	}
}

func suspend(name string, is bool) faults.Action {
	return faults.Edit(name, func(goop *v1alpha1.Goop) { goop.Spec.Suspend = is })
}

func removePod(daemonSet, node string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		pods, err := faults.All[corev1.Pod](s)
		for _, pod := range pods {
			if pod.GenerateName == daemonSet+"-" && pod.Spec.NodeName == s.ClusterName(node) {
				return client.IgnoreNotFound(s.Client.Delete(ctx, pod))
			}
		}
		return err
	}
}

// relabel removes the labels by which the operator knows the round and the role of a pod.
func relabel(ctx context.Context, s *faults.State) error {
	pods, err := faults.All[corev1.Pod](s)
	for _, pod := range pods {
		if pod.GenerateName == "g-0-" {
			delete(pod.Labels, v1alpha1.LabelRound)
			return client.IgnoreNotFound(s.Client.Update(ctx, pod))
		}
	}
	return err
}

func take(name string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		labels := map[string]string{"app": "other"}
		return s.Client.Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						NodeSelector: map[string]string{"none": "such"}, Containers: []corev1.Container{{Name: "pause", Image: "pause"}},
					},
				},
			},
		})
	}
}
