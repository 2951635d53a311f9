package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/binaries"
)

// writes is how often each kind of write is made.
var writes = bench.Number("BENCH_WRITES", 500)

// serverOnly is an API server without any controller: all that it does is due to the writes.
type serverOnly struct {
	*testing.B
	ctx    context.Context
	config *rest.Config
	client client.Client
}

// write is a kind of write. It is made once for each Lolcow, in a namespace of its own.
type write struct {
	name string
	make func(namespace string, lolcow *v1alpha1.Lolcow) error
}

// BenchmarkWrites measures what the five writes of a Lolcow's life cost the API server, and how much less they cost
// without some of their fields.
func BenchmarkWrites(b *testing.B) {
	s := startServerOnly(b)
	s.measure(s.writes()) // what is done for the first time takes longer
	rows := s.measure(s.writes())
	bench.Table(os.Stdout, fmt.Sprintf("%d writes of each kind", writes), []string{"CPU of the API server for each, ms"}, rows)
	b.ReportMetric(0, "ns/op")
}

func startServerOnly(b *testing.B) *serverOnly {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	b.Cleanup(cancel)
	s := &serverOnly{B: b, ctx: ctx}
	dir, err := binaries.Ensure(ctx, os.Stdout, "etcd", "kube-apiserver")
	s.must(err)
	scheme := runtime.NewScheme()
	s.must(clientgoscheme.AddToScheme(scheme))
	s.must(v1alpha1.AddToScheme(scheme))
	env := &envtest.Environment{
		UseExistingCluster:    new(false), // whatever USE_EXISTING_CLUSTER is
		Scheme:                scheme,
		BinaryAssetsDirectory: dir,
		CRDDirectoryPaths:     []string{filepath.Join(stage.Dir, "config", "crd", "bases")},
	}
	env.ControlPlane.GetAPIServer().Configure().
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		Set("service-cluster-ip-range", "10.96.0.0/16").
		Set("service-node-port-range", "20000-32767")
	s.config, err = env.Start()
	s.must(err)
	b.Cleanup(func() {
		if err := env.Stop(); err != nil {
			b.Error(err)
		}
	})
	s.config.QPS = -1
	s.client, err = client.New(s.config, client.Options{Scheme: scheme})
	s.must(err)
	return s
}

func (s *serverOnly) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// serverCPU is the CPU time that the API server has used so far.
func (s *serverOnly) serverCPU() time.Duration {
	s.Helper()
	used, err := bench.CPUOfServer(s.ctx, s.config)
	s.must(err)
	return used
}

// measure makes each kind of write for the same number of new Lolcows, one after the other.
func (s *serverOnly) measure(kinds []write) (rows []bench.Row) {
	for _, kind := range kinds {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "writes-"}}
		s.must(s.client.Create(s.ctx, namespace))
		var lolcows []*v1alpha1.Lolcow
		for i := range writes {
			lolcow := &v1alpha1.Lolcow{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("cow-%05d", i)},
				Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
			}
			s.must(s.client.Create(s.ctx, lolcow))
			lolcows = append(lolcows, lolcow)
		}
		before := s.serverCPU()
		for _, lolcow := range lolcows {
			s.must(kind.make(namespace.Name, lolcow))
		}
		spent := s.serverCPU() - before
		rows = append(rows, bench.Row{Name: kind.name, Figures: []string{fmt.Sprintf("%.2f", bench.Milliseconds(spent, writes))}})
	}
	return rows
}

func (s *serverOnly) writes() []write {
	return append(append(s.lifeWrites(), s.deploymentWrites()...), append(s.serviceWrites(), s.statusWrites()...)...)
}

// lifeWrites are those of the user, and of the operator until the Lolcow is Ready.
func (s *serverOnly) lifeWrites() []write {
	return []write{
		{"create the Lolcow, as its user does", func(namespace string, lolcow *v1alpha1.Lolcow) error {
			return s.client.Create(s.ctx, &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lolcow.Name + "-2"}, Spec: lolcow.Spec})
		}},
		{"apply the Deployment", s.applyDeployment(func(*appsv1ac.DeploymentApplyConfiguration) {})},
		{"apply the Service", s.applyService(func(*corev1ac.ServiceApplyConfiguration) {})},
		{"patch the status", func(_ string, lolcow *v1alpha1.Lolcow) error {
			before := lolcow.DeepCopy()
			setStatus(lolcow, 30000)
			return s.client.Status().Patch(s.ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(bareOwner))
		}},
		{"create the Event", func(namespace string, lolcow *v1alpha1.Lolcow) error {
			return s.client.Create(s.ctx, &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lolcow.Name},
				EventTime:  metav1.NewMicroTime(time.Now()), Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonServing, Action: "Reconcile",
				Note: "every replica serves the greeting", ReportingController: "lolcow-controller", ReportingInstance: "bench",
				Regarding: corev1.ObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Lolcow", Namespace: namespace, Name: lolcow.Name, UID: lolcow.UID},
			})
		}},
	}
}

// deploymentWrites are the apply of the Deployment without some of its fields, and what else could be sent.
func (s *serverOnly) deploymentWrites() []write {
	container := func(d *appsv1ac.DeploymentApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
		return &d.Spec.Template.Spec.Containers[0]
	}
	return []write{
		{"  apply the Deployment without its owner", s.applyDeployment(func(d *appsv1ac.DeploymentApplyConfiguration) { d.OwnerReferences = nil })},
		{"  without its probes", s.applyDeployment(func(d *appsv1ac.DeploymentApplyConfiguration) {
			container(d).LivenessProbe, container(d).ReadinessProbe = nil, nil
		})},
		{"  without its security contexts", s.applyDeployment(func(d *appsv1ac.DeploymentApplyConfiguration) {
			container(d).SecurityContext, d.Spec.Template.Spec.SecurityContext = nil, nil
		})},
		{"  without probes, security contexts and port", s.applyDeployment(func(d *appsv1ac.DeploymentApplyConfiguration) {
			container(d).LivenessProbe, container(d).ReadinessProbe, container(d).Ports = nil, nil, nil
			container(d).SecurityContext, d.Spec.Template.Spec.SecurityContext = nil, nil
		})},
		{"  create the Deployment, not apply", func(_ string, lolcow *v1alpha1.Lolcow) error {
			deployment := &appsv1.Deployment{}
			if err := typed(deploymentOf(lolcow, "example.com/none"), deployment); err != nil {
				return err
			}
			return s.client.Create(s.ctx, deployment)
		}},
	}
}

// serviceWrites are the same for the Service.
func (s *serverOnly) serviceWrites() []write {
	return []write{
		{"  apply the Service without its owner", s.applyService(func(d *corev1ac.ServiceApplyConfiguration) { d.OwnerReferences = nil })},
		{"  without a node port", s.applyService(func(d *corev1ac.ServiceApplyConfiguration) { d.Spec.WithType(corev1.ServiceTypeClusterIP) })},
		{"  without a cluster IP either", s.applyService(func(d *corev1ac.ServiceApplyConfiguration) {
			d.Spec.WithType(corev1.ServiceTypeClusterIP).WithClusterIP(corev1.ClusterIPNone)
		})},
		{"  create the Service, not apply", func(_ string, lolcow *v1alpha1.Lolcow) error {
			service := &corev1.Service{}
			if err := typed(serviceOf(lolcow), service); err != nil {
				return err
			}
			return s.client.Create(s.ctx, service)
		}},
	}
}

// statusWrites are the same for the status.
func (s *serverOnly) statusWrites() []write {
	return []write{
		{"  patch the status without its condition", func(_ string, lolcow *v1alpha1.Lolcow) error {
			before := lolcow.DeepCopy()
			lolcow.Status.ObservedGeneration, lolcow.Status.Port = lolcow.Generation, 30000
			return s.client.Status().Patch(s.ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(bareOwner))
		}},
		{"  update the status, not patch", func(_ string, lolcow *v1alpha1.Lolcow) error {
			setStatus(lolcow, 30000)
			return s.client.Status().Update(s.ctx, lolcow, client.FieldOwner(bareOwner))
		}},
	}
}

func (s *serverOnly) applyDeployment(change func(*appsv1ac.DeploymentApplyConfiguration)) func(string, *v1alpha1.Lolcow) error {
	return func(_ string, lolcow *v1alpha1.Lolcow) error {
		deployment := deploymentOf(lolcow, "example.com/none")
		change(deployment)
		return s.client.Apply(s.ctx, deployment, client.FieldOwner(bareOwner))
	}
}

func (s *serverOnly) applyService(change func(*corev1ac.ServiceApplyConfiguration)) func(string, *v1alpha1.Lolcow) error {
	return func(_ string, lolcow *v1alpha1.Lolcow) error {
		service := serviceOf(lolcow)
		change(service)
		return s.client.Apply(s.ctx, service, client.FieldOwner(bareOwner))
	}
}
