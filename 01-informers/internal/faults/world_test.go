package faults

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/testserver"
)

const (
	// soon is how long Eventually waits, in all tests here: for what must happen, on a busy machine, and after
	// the longest wait of a reflector that a fault may have brought about, which is a minute.
	soon = 2 * time.Minute
	// interval is the time between two looks.
	interval = 20 * time.Millisecond
)

// world is a namespace with Foos, and an operator for it. client is the test's own way to the API server.
// What it is built on, controller-runtime's client, serves both implementations.
type world struct {
	Gomega
	t              *testing.T
	client         client.Client
	account        *inprocess.Account
	implementation string
	namespace      string
	// look is called at every look of soon, if set.
	look func()
}

// newWorld makes one. account may serve many: each operator is confined to its namespace.
func newWorld(t *testing.T, implementation string, account *inprocess.Account) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(testserver.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		Gomega: NewWithT(t), t: t, client: c, account: account,
		implementation: implementation, namespace: testserver.Namespace(t),
	}
}

// start starts an operator whose configuration is changed as said.
func (w *world) start(configure func(*rest.Config)) *inprocess.Running {
	w.t.Helper()
	return inprocess.Start(w.t, w.account, inprocess.Settings{
		Implementation: w.implementation, Namespace: w.namespace, Config: configure,
	})
}

func (w *world) soon(check func(g Gomega)) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		if w.look != nil {
			w.look()
		}
		check(g)
	}).WithPolling(interval).Should(Succeed())
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// create creates a Foo with a Deployment of the same name.
func (w *world) create(name string, replicas int32) {
	w.t.Helper()
	f := &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(replicas)},
	}
	w.Expect(w.client.Create(w.t.Context(), f)).To(Succeed())
}

func (w *world) foo(g Gomega, name string) *v1alpha1.Foo {
	f := &v1alpha1.Foo{}
	g.Expect(w.client.Get(w.t.Context(), w.key(name), f)).To(Succeed())
	return f
}

// change changes the spec of a Foo.
func (w *world) change(name string, mutate func(*v1alpha1.FooSpec)) {
	w.t.Helper()
	w.soon(func(g Gomega) {
		f := w.foo(g, name)
		mutate(&f.Spec)
		g.Expect(w.client.Update(w.t.Context(), f)).To(Succeed())
	})
}

// scale changes the replicas of a Foo.
func (w *world) scale(name string, replicas int32) {
	w.t.Helper()
	w.change(name, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(replicas) })
}

// expectRollingOut waits until a Foo has the Deployment that it wants and says that it is rolling out.
func (w *world) expectRollingOut(name string) {
	w.t.Helper()
	w.soon(func(g Gomega) {
		f := w.foo(g, name)
		var deployment appsv1.Deployment
		g.Expect(w.client.Get(w.t.Context(), w.key(f.Spec.DeploymentName), &deployment)).To(Succeed())
		g.Expect(metav1.IsControlledBy(&deployment, f)).To(BeTrue())
		g.Expect(deployment.Spec.Replicas).To(Equal(f.Spec.Replicas))
		w.expectReady(g, f, v1alpha1.ReasonRollingOut)
	})
}

// rollOut plays the Deployment controller and the kubelets, and waits until the Foo says that all its
// replicas are available.
func (w *world) rollOut(name string) {
	w.t.Helper()
	w.soon(func(g Gomega) {
		var deployment appsv1.Deployment
		g.Expect(w.client.Get(w.t.Context(), w.key(w.foo(g, name).Spec.DeploymentName), &deployment)).To(Succeed())
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation,
			Replicas:           replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		}
		g.Expect(w.client.Status().Update(w.t.Context(), &deployment)).To(Succeed())
	})
	w.soon(func(g Gomega) {
		f := w.foo(g, name)
		w.expectReady(g, f, v1alpha1.ReasonAvailable)
		g.Expect(f.Status.AvailableReplicas).To(Equal(*f.Spec.Replicas))
	})
}

func (w *world) expectReady(g Gomega, f *v1alpha1.Foo, reason string) {
	ready := foo.ReadyOf(f.Status)
	g.Expect(ready.Reason).To(Equal(reason), ready.Message)
	g.Expect(ready.ObservedGeneration).To(Equal(f.Generation))
	g.Expect(f.Status.ObservedGeneration).To(Equal(f.Generation))
}

// end is all Foos and Deployments of a namespace by name, without what differs from run to run.
type end struct {
	foos        map[string]v1alpha1.Foo
	deployments map[string]deployment
}

type deployment struct {
	generation int64
	labels     map[string]string
	spec       appsv1.DeploymentSpec
	owner      string
}

func (w *world) end() end {
	w.t.Helper()
	var foos v1alpha1.FooList
	w.Expect(w.client.List(w.t.Context(), &foos, client.InNamespace(w.namespace))).To(Succeed())
	var deployments appsv1.DeploymentList
	w.Expect(w.client.List(w.t.Context(), &deployments, client.InNamespace(w.namespace))).To(Succeed())

	e := end{foos: map[string]v1alpha1.Foo{}, deployments: map[string]deployment{}}
	names := map[string]string{}
	for _, f := range foos.Items {
		names[string(f.UID)] = f.Name
		for i := range f.Status.Conditions {
			f.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		e.foos[f.Name] = v1alpha1.Foo{Spec: f.Spec, Status: f.Status}
	}
	for _, d := range deployments.Items {
		w.Expect(d.OwnerReferences).To(HaveLen(1))
		e.deployments[d.Name] = deployment{
			generation: d.Generation, labels: d.Labels, spec: d.Spec, owner: names[string(d.OwnerReferences[0].UID)],
		}
	}
	return e
}

// expectGone waits until there is no Deployment of a name.
func (w *world) expectGone(name string) {
	w.t.Helper()
	w.soon(func(g Gomega) {
		g.Expect(apierrors.IsNotFound(w.client.Get(w.t.Context(), w.key(name), &appsv1.Deployment{}))).To(BeTrue())
	})
}

// expectEnd asserts that the Foos of these names are there, each with a Deployment of its own, rolled out,
// and nothing else.
func (w *world) expectEnd(replicas map[string]int32) {
	w.t.Helper()
	e := w.end()
	names := slices.Sorted(maps.Keys(replicas))
	w.Expect(slices.Sorted(maps.Keys(e.foos))).To(Equal(names))
	w.Expect(slices.Sorted(maps.Keys(e.deployments))).To(Equal(names))
	for name, want := range replicas {
		w.Expect(e.deployments[name].owner).To(Equal(name))
		w.Expect(e.deployments[name].spec.Replicas).To(HaveValue(Equal(want)))
		w.Expect(e.foos[name].Status.AvailableReplicas).To(Equal(want))
		w.Expect(e.foos[name].Status.Conditions).To(HaveLen(1), "Ready, and not Stalled")
		w.Expect(e.foos[name].Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
	}
}
