package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/cluster"
)

// scaffoldVariable tells the test program that it is the scaffolded operator, and names its kubeconfig.
const scaffoldVariable = "BENCH_SCAFFOLD"

// scaffoldWriter is the loop of scaffolds, in a process of its own. It updates where the operator applies, and so needs
// permissions of its own.
func (r runner) scaffoldWriter() bench.Writer {
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	account := r.Account(
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"lolcows", "lolcows/status", "lolcows/finalizers"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: all},
	)
	return bench.Writer{Name: "scaffold", User: r.User(account), Start: func(string) bench.Running { return r.startScaffold(account) }}
}

func (r runner) startScaffold(account string) bench.Running {
	kubeconfig := filepath.Join(r.TempDir(), "kubeconfig")
	r.Must(cluster.WriteTokenKubeconfig(kubeconfig, r.Env.Cluster, r.ConfigOf(account).BearerToken))
	cmd := exec.CommandContext(r.Ctx, os.Args[0])
	cmd.Env = append(os.Environ(), scaffoldVariable+"="+kubeconfig, "KUBECONFIG="+kubeconfig, "RELATED_IMAGE_LOLCOW="+r.Env.Images["lolcow"])
	log, err := os.Create(filepath.Join(r.Env.Artifacts, "scaffold.log"))
	r.Must(err)
	cmd.Stdout, cmd.Stderr = log, log
	r.Must(cmd.Start())
	return bench.Running{Pid: cmd.Process.Pid, Work: func() {}, Stop: func() {
		r.Must(cmd.Process.Signal(syscall.SIGTERM))
		r.Must(cmd.Wait())
		_ = log.Close()
	}}
}

// scaffold is that process: what `kubebuilder create api` makes, with the loop that tutorials put into it.
func scaffold() error {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&scaffolded{mgr.GetClient(), os.Getenv("RELATED_IMAGE_LOLCOW")})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// scaffolded is the reconciler that scaffolds teach: create each dependent, or update it to the whole of what is desired,
// and write the status, each time.
type scaffolded struct {
	client.Client
	image string
}

func (s *scaffolded) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := s.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var wantedDeployment appsv1.Deployment
	if err := typed(deploymentOf(&lolcow, s.image), &wantedDeployment); err != nil {
		return ctrl.Result{}, err
	}
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = lolcow.Namespace, lolcow.Name
	if _, err := controllerutil.CreateOrUpdate(ctx, s.Client, deployment, func() error {
		deployment.Labels, deployment.Spec = wantedDeployment.Labels, wantedDeployment.Spec
		return controllerutil.SetControllerReference(&lolcow, deployment, s.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	var wantedService corev1.Service
	if err := typed(serviceOf(&lolcow), &wantedService); err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{}
	service.Namespace, service.Name = lolcow.Namespace, lolcow.Name
	if _, err := controllerutil.CreateOrUpdate(ctx, s.Client, service, func() error {
		service.Labels, service.Spec = wantedService.Labels, wantedService.Spec
		return controllerutil.SetControllerReference(&lolcow, service, s.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	setStatus(&lolcow, service.Spec.Ports[0].NodePort)
	return ctrl.Result{}, s.Status().Update(ctx, &lolcow)
}

// typed turns an apply configuration into an object.
func typed(configuration runtime.ApplyConfiguration, object client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
}
