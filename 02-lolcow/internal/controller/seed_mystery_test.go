package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// seedReconciler is the seed's controller made small. Between the version that failed for ever and the one that
// worked, its author changed three things at once: the dependents' names, Owns, and the RBAC markers.
type seedReconciler struct {
	client.Client
	// fixedNames: it looks for dependents of the Lolcow's name, and creates dependents that are named otherwise.
	fixedNames bool

	mu    sync.Mutex
	calls int
	errs  []error
	last  error
}

// names are those of the dependents that it creates.
func (r *seedReconciler) names(lolcow *v1alpha1.Lolcow) (deployment, service string) {
	if r.fixedNames {
		return "lolcow-pod", "backend-service"
	}
	return lolcow.Name, lolcow.Name
}

func (r *seedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.reconcile(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.last = r.calls+1, err
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return ctrl.Result{}, err
}

func (r *seedReconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return client.IgnoreNotFound(err)
	}
	deploymentName, serviceName := r.names(&lolcow)

	var deployment appsv1.Deployment
	err := r.Get(ctx, req.NamespacedName, &deployment)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.createDependent(ctx, &lolcow, seedDeployment(&lolcow, deploymentName)); err != nil {
			return err
		}
	case err != nil:
		return err
	case deployment.Spec.Template.Spec.Containers[0].Args[0] != lolcow.Spec.Greeting:
		deployment.Spec.Template.Spec.Containers[0].Args[0] = lolcow.Spec.Greeting
		if err := r.Update(ctx, &deployment); err != nil {
			return err
		}
	}

	err = r.Get(ctx, req.NamespacedName, &corev1.Service{})
	if apierrors.IsNotFound(err) {
		return r.createDependent(ctx, &lolcow, seedService(&lolcow, serviceName))
	}
	return err
}

func (r *seedReconciler) createDependent(ctx context.Context, lolcow *v1alpha1.Lolcow, dependent client.Object) error {
	if err := controllerutil.SetControllerReference(lolcow, dependent, scheme); err != nil {
		return err
	}
	return r.Create(ctx, dependent)
}

func (r *seedReconciler) seen() (calls int, errs []error, last error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls, append([]error(nil), r.errs...), r.last
}

func seedDeployment(lolcow *v1alpha1.Lolcow, name string) *appsv1.Deployment {
	labels := map[string]string{"app": "lolcow"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: lolcow.Namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "lolcow", Image: serverImage, Args: []string{lolcow.Spec.Greeting},
				}}},
			},
		},
	}
}

func seedService(lolcow *v1alpha1.Lolcow, name string) *corev1.Service {
	port := corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(8080)}
	if lolcow.Spec.Port != nil {
		port.NodePort = *lolcow.Spec.Port
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: lolcow.Namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "lolcow"}, Ports: []corev1.ServicePort{port},
		},
	}
}

// startSeed runs the seed's controller with a manager, in one namespace, as a user who may do everything.
func startSeed(t *testing.T, f *testEnv, fixedNames, owns bool) *seedReconciler {
	t.Helper()
	o := newOperator(t, f)
	mgr, err := ctrl.NewManager(o.config, ctrl.Options{
		Scheme:     scheme,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	r := &seedReconciler{Client: mgr.GetClient(), fixedNames: fixedNames}
	builder := ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Lolcow{})
	if owns {
		builder = builder.Owns(&appsv1.Deployment{}).Owns(&corev1.Service{})
	}
	f.Expect(builder.Complete(r)).To(Succeed())
	runManager(f.ctx, t, mgr)
	return r
}

// Q1: was it RBAC, Owns, or something else? It was the names. The controller may do everything in all four cases.
func TestSeedQuestion_TheSpiralIsTheNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fixedNames, owns, spirals bool }{
		{fixedNames: true, owns: false, spirals: true},
		{fixedNames: true, owns: true, spirals: true},
		{fixedNames: false, owns: false, spirals: false},
		{fixedNames: false, owns: true, spirals: false},
	} {
		t.Run(fmt.Sprintf("fixedNames=%t owns=%t", test.fixedNames, test.owns), func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			r := startSeed(t, f, test.fixedNames, test.owns)
			lolcow := f.lolcow("lolcow-sample", v1alpha1.LolcowSpec{Greeting: "Moo"})
			f.Expect(f.client.Create(f.ctx, lolcow)).To(Succeed())
			deployment, service := &appsv1.Deployment{}, &corev1.Service{}
			deploymentName, serviceName := r.names(lolcow)
			f.Eventually(func(g Gomega) {
				g.Expect(f.client.Get(f.ctx, f.key(deploymentName), deployment)).To(Succeed())
				g.Expect(f.client.Get(f.ctx, f.key(serviceName), service)).To(Succeed(), "both start, once")
			}).WithTimeout(settleTimeout).Should(Succeed())

			lolcow.Spec.Greeting = "Baa"
			f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
			if test.spirals {
				f.Eventually(func() int { _, errs, _ := r.seen(); return len(errs) }).
					WithTimeout(settleTimeout).Should(BeNumerically(">=", 8), "it fails, and fails again")
				_, errs, last := r.seen()
				f.Expect(errs).To(HaveEach(Satisfy(apierrors.IsAlreadyExists)), "none of them says Forbidden")
				f.Expect(f.client.Get(f.ctx, f.key(deploymentName), deployment)).To(Succeed())
				f.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"Moo"}), "the new greeting never arrives")
				t.Logf("%d failures, the last: %v", len(errs), last)
				return
			}
			f.Eventually(func(g Gomega) {
				_, _, last := r.seen()
				g.Expect(last).NotTo(HaveOccurred())
				g.Expect(f.client.Get(f.ctx, f.key(deploymentName), deployment)).To(Succeed())
				g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"Baa"}))
			}).WithTimeout(settleTimeout).Should(Succeed())
			calls, errs, _ := r.seen()
			t.Logf("settled after %d reconciliations, %d of them failed: %v", calls, len(errs), errs)
		})
	}
}

// A controller that lacks a permission gets Forbidden, never "not found", and creates nothing.
func TestSeedQuestion_MissingRightsDoNotLookLikeNotFound(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.Expect(f.client.Create(f.ctx, f.lolcow("lolcow-sample", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
	// The three markers of the template.
	r := &seedReconciler{Client: f.clientWith(t, seedTemplateRules), fixedNames: true}
	f.Eventually(func(g Gomega) {
		_, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("lolcow-sample")})
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring(`cannot get resource "deployments" in API group "apps"`)))
	}).WithTimeout(settleTimeout).Should(Succeed())
	_, _, last := r.seen()
	t.Log(strings.ReplaceAll(last.Error(), f.namespace, "default"))
	var deployments appsv1.DeploymentList
	f.Expect(f.client.List(f.ctx, &deployments, client.InNamespace(f.namespace))).To(Succeed())
	f.Expect(deployments.Items).To(BeEmpty(), "the seed's author saw dependents: the permissions were there")
}
