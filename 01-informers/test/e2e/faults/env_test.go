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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/testserver"
)

const (
	// timeout is the limit of every Eventually here. A reflector waits for up to a minute after a fault, and the machine may
	// be busy.
	timeout = 2 * time.Minute
	// interval is the time between two checks.
	interval = 20 * time.Millisecond
)

// testEnv is a namespace with Foos, and an operator for it. client is the test's own, without a proxy.
type testEnv struct {
	Gomega
	t              *testing.T
	client         client.Client
	account        *inprocess.Account
	implementation string
	namespace      string
	// beforeCheck is called before each check of eventually, unless it is nil.
	beforeCheck func()
}

// newEnv creates the namespace. Several may share an account: each operator sees one namespace only.
func newEnv(t *testing.T, implementation string, account *inprocess.Account) *testEnv {
	t.Helper()
	return &testEnv{
		Gomega: NewWithT(t), t: t, client: inprocess.Client(t), account: account,
		implementation: implementation, namespace: testserver.Namespace(t),
	}
}

// start starts an operator. configure changes how it connects to the API server.
func (e *testEnv) start(configure func(*rest.Config)) *inprocess.Running {
	e.t.Helper()
	return inprocess.Start(e.t, e.account, inprocess.Settings{
		Implementation: e.implementation, Namespace: e.namespace, Config: configure,
	})
}

func (e *testEnv) eventually(check func(g Gomega)) {
	e.t.Helper()
	e.Eventually(func(g Gomega) {
		if e.beforeCheck != nil {
			e.beforeCheck()
		}
		check(g)
	}).WithPolling(interval).Should(Succeed())
}

func (e *testEnv) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: e.namespace, Name: name}
}

// create creates a Foo with a Deployment of the same name.
func (e *testEnv) create(name string, replicas int32) {
	e.t.Helper()
	f := &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(replicas)},
	}
	e.Expect(e.client.Create(e.t.Context(), f)).To(Succeed())
}

func (e *testEnv) foo(g Gomega, name string) *v1alpha1.Foo {
	f := &v1alpha1.Foo{}
	g.Expect(e.client.Get(e.t.Context(), e.key(name), f)).To(Succeed())
	return f
}

// change changes the spec of a Foo.
func (e *testEnv) change(name string, mutate func(*v1alpha1.FooSpec)) {
	e.t.Helper()
	e.eventually(func(g Gomega) {
		f := e.foo(g, name)
		mutate(&f.Spec)
		g.Expect(e.client.Update(e.t.Context(), f)).To(Succeed())
	})
}

// scale changes the replicas of a Foo.
func (e *testEnv) scale(name string, replicas int32) {
	e.t.Helper()
	e.change(name, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(replicas) })
}

// expectRollingOut waits until a Foo has the Deployment of its spec and reports that it is rolling out.
func (e *testEnv) expectRollingOut(name string) {
	e.t.Helper()
	e.eventually(func(g Gomega) {
		f := e.foo(g, name)
		var deployment appsv1.Deployment
		g.Expect(e.client.Get(e.t.Context(), e.key(f.Spec.DeploymentName), &deployment)).To(Succeed())
		g.Expect(metav1.IsControlledBy(&deployment, f)).To(BeTrue())
		g.Expect(deployment.Spec.Replicas).To(Equal(f.Spec.Replicas))
		e.expectReady(g, f, v1alpha1.ReasonRollingOut)
	})
}

// rollOut rolls out a Foo's Deployment, and waits until the Foo reports that all its replicas are available.
func (e *testEnv) rollOut(name string) {
	e.t.Helper()
	e.eventually(func(g Gomega) {
		g.Expect(inprocess.RollOut(e.t.Context(), e.client, e.key(e.foo(g, name).Spec.DeploymentName))).To(Succeed())
	})
	e.eventually(func(g Gomega) {
		f := e.foo(g, name)
		e.expectReady(g, f, v1alpha1.ReasonAvailable)
		g.Expect(f.Status.AvailableReplicas).To(Equal(*f.Spec.Replicas))
	})
}

func (e *testEnv) expectReady(g Gomega, f *v1alpha1.Foo, reason string) {
	ready := foo.ReadyOf(f.Status)
	g.Expect(ready.Reason).To(Equal(reason), ready.Message)
	g.Expect(ready.ObservedGeneration).To(Equal(f.Generation))
	g.Expect(f.Status.ObservedGeneration).To(Equal(f.Generation))
}

// state is all Foos and Deployments of a namespace by name, without the fields that differ in each run.
type state struct {
	foos        map[string]v1alpha1.Foo
	deployments map[string]deployment
}

type deployment struct {
	generation int64
	labels     map[string]string
	spec       appsv1.DeploymentSpec
	owner      string
}

func (e *testEnv) state() state {
	e.t.Helper()
	var foos v1alpha1.FooList
	e.Expect(e.client.List(e.t.Context(), &foos, client.InNamespace(e.namespace))).To(Succeed())
	var deployments appsv1.DeploymentList
	e.Expect(e.client.List(e.t.Context(), &deployments, client.InNamespace(e.namespace))).To(Succeed())

	s := state{foos: map[string]v1alpha1.Foo{}, deployments: map[string]deployment{}}
	names := map[string]string{}
	for _, f := range foos.Items {
		names[string(f.UID)] = f.Name
		for i := range f.Status.Conditions {
			f.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		s.foos[f.Name] = v1alpha1.Foo{Spec: f.Spec, Status: f.Status}
	}
	for _, d := range deployments.Items {
		e.Expect(d.OwnerReferences).To(HaveLen(1))
		s.deployments[d.Name] = deployment{
			generation: d.Generation, labels: d.Labels, spec: d.Spec, owner: names[string(d.OwnerReferences[0].UID)],
		}
	}
	return s
}

// expectGone waits until no Deployment has a name.
func (e *testEnv) expectGone(name string) {
	e.t.Helper()
	e.eventually(func(g Gomega) {
		g.Expect(apierrors.IsNotFound(e.client.Get(e.t.Context(), e.key(name), &appsv1.Deployment{}))).To(BeTrue())
	})
}

// expectState asserts that the namespace has the Foos of these names, each with a Deployment that is rolled out, and no
// other Foos and Deployments.
func (e *testEnv) expectState(replicas map[string]int32) {
	e.t.Helper()
	s := e.state()
	names := slices.Sorted(maps.Keys(replicas))
	e.Expect(slices.Sorted(maps.Keys(s.foos))).To(Equal(names))
	e.Expect(slices.Sorted(maps.Keys(s.deployments))).To(Equal(names))
	for name, want := range replicas {
		e.Expect(s.deployments[name].owner).To(Equal(name))
		e.Expect(s.deployments[name].spec.Replicas).To(HaveValue(Equal(want)))
		e.Expect(s.foos[name].Status.AvailableReplicas).To(Equal(want))
		e.Expect(s.foos[name].Status.Conditions).To(HaveLen(1), "there is Ready and no Stalled")
		e.Expect(s.foos[name].Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
	}
}
