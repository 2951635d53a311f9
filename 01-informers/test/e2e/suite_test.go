// Package e2e tests the Foo operator on a cluster: on kind with containers, on the embedded cluster what needs none. The flag
// -implementation says which of the two implementations is deployed. `make stage-1 e2e` tests one after the other.
package e2e

import (
	"context"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// The flags of the operator.
const (
	// retries is small, so that they are exhausted within a second and not within minutes.
	retries = "5"
	// stalledWithin bounds the time until a Foo is Stalled.
	stalledWithin = 10 * time.Second
)

// overlays are the folders of config/ that deploy the implementations.
var overlays = map[string]string{"managed": deploy.DefaultOverlay, "raw": "raw"}

var implementation = flag.String("implementation", "managed", "which implementation to deploy: managed or raw")

// env is set before the first spec runs.
var env *e2e.Env

func TestE2E(t *testing.T) {
	overlay, known := overlays[*implementation]
	if !known {
		t.Fatalf("there is no implementation %q: give managed or raw", *implementation)
	}
	env = e2e.Suite(e2e.Stage{
		Name:         "01-informers",
		Dir:          "../..",
		Overlay:      overlay,
		Images:       map[string]string{"controller": "manager", "foo": "foo"},
		AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		OperatorArgs: append([]string{"--max-retries=" + retries}, e2e.ShortLease...),
	})
	RegisterFailHandler(Fail)
	RunSpecs(t, "01-informers, "+*implementation)
}

// newFoo returns a Foo that is not created yet, whose Deployment has its name.
func newFoo(namespace, name string, replicas int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}
}

// create creates a Foo.
func create(ctx context.Context, namespace string, replicas int32) *v1alpha1.Foo {
	GinkgoHelper()
	foo := newFoo(namespace, "web", replicas)
	Expect(env.Client.Create(ctx, foo)).To(Succeed())
	return foo
}

func change(ctx context.Context, foo *v1alpha1.Foo, mutate func(*v1alpha1.FooSpec)) {
	GinkgoHelper()
	expect.Update(ctx, env.Client, foo, func(f *v1alpha1.Foo) { mutate(&f.Spec) })
}

func expectAvailable(ctx context.Context, foo *v1alpha1.Foo) {
	GinkgoHelper()
	expect.Condition(ctx, env.Client, foo, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
}

func deploymentOf(foo *v1alpha1.Foo) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}}
}

func deploymentsIn(ctx context.Context, namespace string) []appsv1.Deployment {
	GinkgoHelper()
	var list appsv1.DeploymentList
	Expect(env.Client.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}
