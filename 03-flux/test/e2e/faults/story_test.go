package faults

import (
	"context"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/controller"
	"example.com/workbook/shared/faults"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

func setup(ctx context.Context, mgr ctrl.Manager, env faults.Env) error {
	fluxes := controller.NewFluxReconciler(mgr.GetClient(), mgr.GetAPIReader(), env.Recorder, env.Clock)
	if err := fluxes.SetupWithManager(ctx, mgr, env.Queue); err != nil {
		return err
	}
	return controller.NewFluxSetupReconciler(mgr.GetClient(), mgr.GetAPIReader(), env.Clock).SetupWithManager(ctx, mgr, env.Queue)
}

// One Flux fails, is restarted, suspended, resumed, and completes. Another one has a single broker.
var story = []faults.Op{
	{Name: "create f", Do: faults.IgnoreExisting(create("f", 2))}, // others may have created it
	{Name: "attempt 1 of f fails", Do: commandEnds("f-1", 3)},
	{Name: "suspend f", Do: suspend("f", true)},
	{Name: "resume f", Do: suspend("f", false)},
	{Name: "attempt 3 of f succeeds", Do: commandEnds("f-3", 0)},
	{Name: "create g", Do: create("g", 1)},
	{Name: "attempt 1 of g succeeds", Do: commandEnds("g-1", 0)},
	{Name: "delete f", Do: faults.Delete[v1alpha1.Flux]("f", metav1.DeletePropagationBackground)},
}

// What other users and controllers do.
var anytime = []faults.Op{
	{Name: "delete f", Do: faults.Delete[v1alpha1.Flux]("f", metav1.DeletePropagationBackground)},
	{Name: "delete f in the foreground", Do: faults.Delete[v1alpha1.Flux]("f", metav1.DeletePropagationForeground)},
	{Name: "delete f and orphan", Do: faults.Delete[v1alpha1.Flux]("f", metav1.DeletePropagationOrphan)},
	{Name: "recreate f", Do: faults.Sequence(faults.Delete[v1alpha1.Flux]("f", metav1.DeletePropagationBackground), faults.IgnoreExisting(create("f", 2)))},
	{Name: "suspend f", Do: suspend("f", true)},
	{Name: "delete f's setup", Do: faults.Delete[v1alpha1.FluxSetup]("f", metav1.DeletePropagationBackground)},
	{Name: "strip f's setup", Do: faults.Edit("f", func(s *v1alpha1.FluxSetup) { s.OwnerReferences = nil })},
	{Name: "delete f's Job", Do: faults.Delete[batchv1.Job]("f-1", metav1.DeletePropagationBackground)},
	{Name: "orphan f's Job", Do: faults.Edit("f-1", func(j *batchv1.Job) { j.OwnerReferences = nil })},
	{Name: "suspend f's Job", Do: faults.Edit("f-1", func(j *batchv1.Job) { j.Spec.Suspend = new(true) })},
	{Name: "delete f's Service", Do: faults.Delete[corev1.Service]("f", metav1.DeletePropagationBackground)},
	{Name: "delete f's ConfigMap", Do: faults.Delete[corev1.ConfigMap]("f-1", metav1.DeletePropagationBackground)},
	{Name: "delete f's leader", Do: deletePod("f-1-0")},
	{Name: "delete f's follower", Do: deletePod("f-1-1")},
	{Name: "take f's names", Do: faults.IgnoreExisting(take)},
	{Name: "release f's names", Do: faults.Sequence(faults.DeleteUnowned[batchv1.Job]("f-1"), faults.DeleteUnowned[corev1.Service]("f"))},
}

func create(name string, size int32) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		return s.Client.Create(ctx, &v1alpha1.Flux{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
			Spec:       v1alpha1.FluxSpec{Image: "flux", Command: []string{"work"}, Size: size, MaxRestarts: 1},
		})
	}
}

func suspend(name string, is bool) faults.Action {
	return faults.Edit(name, func(flux *v1alpha1.Flux) { flux.Spec.Suspend = is })
}

// exitCodes is the name of a ConfigMap of the tests: how the command of each Job ends. Without an entry it runs.
const exitCodes = "exit-codes"

func commandEnds(job string, code int) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		codes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: exitCodes, Namespace: s.Namespace}}
		if err := s.Client.Create(ctx, codes); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return faults.Change(ctx, s, exitCodes, func(codes *corev1.ConfigMap) {
			if codes.Data == nil {
				codes.Data = map[string]string{}
			}
			codes.Data[job] = strconv.Itoa(code)
		})
	}
}

func deletePod(prefix string) faults.Action {
	return func(ctx context.Context, s *faults.State) error {
		pods, err := faults.All[corev1.Pod](s)
		for _, pod := range pods {
			if strings.HasPrefix(pod.Name, prefix) {
				return client.IgnoreNotFound(s.Client.Delete(ctx, pod))
			}
		}
		return err
	}
}

// take creates the Job and the Service of another user.
func take(ctx context.Context, s *faults.State) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: s.Namespace} }
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "pause", Image: "pause"}},
	}}
	job := &batchv1.Job{ObjectMeta: meta("f-1"), Spec: batchv1.JobSpec{Suspend: new(true), Template: template}}
	if err := s.Client.Create(ctx, job); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return s.Client.Create(ctx, &corev1.Service{ObjectMeta: meta("f"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
}
