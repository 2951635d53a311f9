package portit

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const fooName = "a"

// cluster is a namespace in which a manager runs.
type cluster struct {
	b         *check.B
	wire      *kube.Wire
	client    client.Client
	namespace string
	// controllers are the reader's.
	controllers []controller.Controller
}

// manager is one that notes which controllers are added to it.
type manager struct {
	ctrl.Manager
	cluster *cluster
}

func (m *manager) Add(runnable ctrlmanager.Runnable) error {
	if one, ok := runnable.(controller.Controller); ok {
		m.cluster.controllers = append(m.cluster.controllers, one)
	}
	return m.Manager.Add(runnable)
}

func start(b *check.B, entry Entry) *cluster {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		b.Fatalf("making a scheme: %v", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		b.Fatalf("making a scheme: %v", err)
	}
	own, err := client.New(kube.Config(b), client.Options{Scheme: scheme})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	c := &cluster{b: b, wire: kube.NewWire(b), client: own, namespace: kube.Namespace(b)}
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(c.wire.Config(), ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
		// There is a manager for each behaviour.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		b.Fatalf("making a manager: %v", err)
	}
	if err := entry(b.Context(), &manager{mgr, c}); err != nil {
		b.Fatalf("Setup returned an error: %v", err)
	}
	stopped := b.Go(func() {
		if err := mgr.Start(b.Context()); err != nil {
			b.Errorf("the manager returned an error: %v", err)
		}
	})
	b.Cleanup(func() { <-stopped })
	return c
}

// eventually gets an object until it is as expected.
func eventually[O client.Object](c *cluster, name string, object O, expected func(object O, err error) string) {
	c.b.Eventually(patience, func() string {
		// Many checks may share the API server.
		time.Sleep(20 * time.Millisecond)
		err := c.client.Get(c.b.Context(), c.key(name), object)
		if err != nil && !apierrors.IsNotFound(err) {
			c.b.Fatalf("reading %s: %v", name, err)
		}
		return expected(object, err)
	})
}

func (c *cluster) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: name}
}

func (c *cluster) must(what string, err error) {
	if err != nil {
		c.b.Fatalf("%s: %v", what, err)
	}
}

func (c *cluster) createFoo(name, deploymentName string) {
	c.b.Event("the user creates Foo %s with the deploymentName %s", name, deploymentName)
	c.must("creating a Foo", c.client.Create(c.b.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName},
	}))
}

// set changes a field of the Foo's spec. The value is JSON.
func (c *cluster) set(field, value string) {
	c.b.Event("the user sets spec.%s to %s", field, value)
	f := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fooName}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{%q:%s}}`, field, value))
	c.must("changing the Foo", c.client.Patch(c.b.Context(), f, patch))
}

// earlierFoo is the owner reference of a Foo of the same name that was there before.
func earlierFoo() metav1.OwnerReference {
	earlier := &metav1.ObjectMeta{Name: fooName, UID: "11111111-2222-3333-4444-555555555555"}
	return *metav1.NewControllerRef(earlier, v1alpha1.SchemeGroupVersion.WithKind("Foo"))
}

// createOther creates a Deployment that the Foo does not control.
func (c *cluster) createOther(name string, owners ...metav1.OwnerReference) *appsv1.Deployment {
	c.b.Event("another user creates Deployment %s", name)
	for _, owner := range owners {
		c.b.Event("  it is controlled by Foo %s with the uid %s", owner.Name, owner.UID)
	}
	labels := map[string]string{"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": fooName}
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: labels, OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foo", Image: "example.com/other"}}},
			},
		},
	}
	c.must("creating a Deployment", c.client.Create(c.b.Context(), other))
	return other
}

func (c *cluster) delete(deployment *appsv1.Deployment) {
	c.b.Event("another user deletes Deployment %s", deployment.Name)
	c.must("deleting a Deployment", c.client.Delete(c.b.Context(), deployment, client.Preconditions{UID: &deployment.UID}))
}

// replace deletes a Deployment, and creates another one of its name just before the controller does. It waits for that.
func (c *cluster) replace(own *appsv1.Deployment) *appsv1.Deployment {
	created := make(chan *appsv1.Deployment, 1)
	var once sync.Once
	c.wire.Before(func(r kube.Request, _ *http.Request) (*http.Response, error) {
		// A write of before the deletion may still be on its way.
		if r.Resource == "deployments" && kube.Writes(r) && c.isGone(own.Name) {
			once.Do(func() { created <- c.createOther(own.Name) })
		}
		return nil, nil
	})
	c.delete(own)
	var other *appsv1.Deployment
	c.b.Eventually(patience, func() string {
		select {
		case other = <-created:
			return ""
		default:
			return fmt.Sprintf("Deployment %s was deleted, and the controller does not create it again", own.Name)
		}
	})
	return other
}

func (c *cluster) isGone(name string) bool {
	return apierrors.IsNotFound(c.client.Get(c.b.Context(), c.key(name), &appsv1.Deployment{}))
}

// rollOut simulates the Deployment controller and the kubelets.
func (c *cluster) rollOut(name string) {
	c.b.Event("all replicas of Deployment %s are available", name)
	deployment := &appsv1.Deployment{}
	c.must("reading a Deployment", c.client.Get(c.b.Context(), c.key(name), deployment))
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Status = rolledOut(deployment)
	c.must("changing the status of a Deployment", c.client.Status().Patch(c.b.Context(), deployment, patch))
}

// expectOwn waits for a Deployment that a Foo controls.
func (c *cluster) expectOwn(name, deploymentName string) *appsv1.Deployment {
	f := &v1alpha1.Foo{}
	c.must("reading the Foo", c.client.Get(c.b.Context(), c.key(name), f))
	deployment := &appsv1.Deployment{}
	eventually(c, deploymentName, deployment, func(live *appsv1.Deployment, err error) string {
		if err != nil || !metav1.IsControlledBy(live, f) {
			return fmt.Sprintf("Foo %s controls no Deployment %s", name, deploymentName)
		}
		return ""
	})
	return deployment
}

func (c *cluster) expectReplicas(name string, want int32) {
	eventually(c, name, &appsv1.Deployment{}, func(live *appsv1.Deployment, err error) string {
		if err != nil || *live.Spec.Replicas != want {
			return fmt.Sprintf("spec.replicas of the Foo is %d, and Deployment %s has another number", want, name)
		}
		return ""
	})
}

func (c *cluster) expectGone(deployment *appsv1.Deployment) {
	eventually(c, deployment.Name, &appsv1.Deployment{}, func(_ *appsv1.Deployment, err error) string {
		if err == nil {
			return fmt.Sprintf("Deployment %s is still there", deployment.Name)
		}
		return ""
	})
}

// expectUnchanged asserts that a Deployment is as the other user has left it.
func (c *cluster) expectUnchanged(deployment *appsv1.Deployment) {
	live := &appsv1.Deployment{}
	err := c.client.Get(c.b.Context(), client.ObjectKeyFromObject(deployment), live)
	if err != nil || live.ResourceVersion != deployment.ResourceVersion {
		c.b.Fatalf("Deployment %s of another user was changed or deleted", deployment.Name)
	}
}

func (c *cluster) expectReady(name string, status metav1.ConditionStatus, reason string) {
	eventually(c, name, &v1alpha1.Foo{}, func(f *v1alpha1.Foo, _ error) string { return wrongReady(f, status, reason) })
}

// wrongReady says in which way Ready is not so, or returns an empty string.
func wrongReady(f *v1alpha1.Foo, status metav1.ConditionStatus, reason string) string {
	ready := foo.ReadyOf(f.Status)
	if ready.Status == status && ready.Reason == reason {
		return ""
	}
	return fmt.Sprintf("Ready of Foo %s is %q with the reason %q, and should be %s with %s",
		f.Name, ready.Status, ready.Reason, status, reason)
}

// expectConflict waits for the report that a Deployment of another user has the name, which stays as it is.
func (c *cluster) expectConflict(other *appsv1.Deployment) {
	eventually(c, fooName, &v1alpha1.Foo{}, func(f *v1alpha1.Foo, _ error) string {
		c.expectUnchanged(other)
		return wrongReady(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	})
}

// expectNoPolling asserts that nothing but an event leads to the next reconciliation.
func (c *cluster) expectNoPolling(when string) {
	c.b.Eventually(patience, func() string {
		for _, one := range c.controllers {
			result, err := one.Reconcile(c.b.Context(), reconcile.Request{NamespacedName: c.key(fooName)})
			if err != nil {
				return fmt.Sprintf("%s, nothing changes, and Reconcile returns an error, so that it is called again: %v", when, err)
			}
			if !result.IsZero() {
				return fmt.Sprintf("%s, nothing changes, and Reconcile asks to be called again after %s", when, result.RequeueAfter)
			}
		}
		return ""
	})
}

// expectCaughtUp waits until the manager has received all events so far, and has reconciled for them: first those of Foos, then
// those of Deployments. So what comes next is reconciled because of its own event, and not by chance because of an earlier one.
func (c *cluster) expectCaughtUp() {
	c.createFoo("marker", "marker")
	c.expectOwn("marker", "marker")
	c.expectReady("marker", metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	c.createFoo("marker-2", "marker-2")
	c.expectOwn("marker-2", "marker-2")
	c.delete(c.expectOwn("marker", "marker"))
	c.expectOwn("marker", "marker")
}
