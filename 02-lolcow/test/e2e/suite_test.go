// Package e2e proves the Lolcow operator on a cluster: on kind really, with containers and over the
// network; on the embedded cluster all that needs no running container.
package e2e

import (
	"context"
	"flag"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

var (
	overlay = flag.String("overlay", deploy.DefaultOverlay, "the folder of config/ to deploy")

	// env is set before the first spec runs.
	env *e2e.Env
)

func TestE2E(t *testing.T) {
	env = e2e.Suite(e2e.Stage{
		Name:         "02-lolcow",
		Dir:          "../..",
		Overlay:      *overlay,
		Images:       map[string]string{"controller": "manager", "lolcow": "lolcow"},
		AddToScheme:  []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		OperatorArgs: e2e.ShortLease,
	})
	// starter: not in a copy
	if *overlay == "conversion" {
		Describe("Both versions of the API", bothVersions)
	}
	// starter: end
	RegisterFailHandler(Fail)
	RunSpecs(t, "02-lolcow")
}

// create creates a Lolcow in a namespace.
func create(ctx context.Context, namespace, name string, spec v1alpha1.LolcowSpec) *v1alpha1.Lolcow {
	GinkgoHelper()
	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	Expect(env.Client.Create(ctx, lolcow)).To(Succeed())
	return lolcow
}

func change(ctx context.Context, lolcow *v1alpha1.Lolcow, mutate func(*v1alpha1.LolcowSpec)) {
	GinkgoHelper()
	expect.Update(ctx, env.Client, lolcow, func(l *v1alpha1.Lolcow) { mutate(&l.Spec) })
}

func expectServing(ctx context.Context, lolcow *v1alpha1.Lolcow) {
	GinkgoHelper()
	expect.Condition(ctx, env.Client, lolcow, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
}

func expectNotReady(ctx context.Context, lolcow *v1alpha1.Lolcow, reason string) {
	GinkgoHelper()
	expect.Condition(ctx, env.Client, lolcow, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
}

func deploymentOf(lolcow *v1alpha1.Lolcow) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: lolcow.Namespace, Name: lolcow.Name}}
}

func serviceOf(lolcow *v1alpha1.Lolcow) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: lolcow.Namespace, Name: lolcow.Name}}
}

// squatter is a Service of someone else that holds a node port.
func squatter(ctx context.Context, namespace string, port int32) *corev1.Service {
	GinkgoHelper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "squatter"},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
		},
	}
	Expect(env.Client.Create(ctx, service)).To(Succeed())
	return service
}

func refresh(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
}
