package inprocess

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/testserver"
)

// Client returns an administrator's client, without a cache, for Foo and Kubernetes' own kinds.
func Client(tb testing.TB) client.Client {
	tb.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(testserver.Config(tb), client.Options{Scheme: scheme})
	gomega.NewWithT(tb).Expect(err).NotTo(gomega.HaveOccurred())
	return c
}

// RollOut simulates the Deployment controller and the kubelets: all replicas are updated and available.
func RollOut(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, key, &deployment); err != nil {
		return err
	}
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas,
		UpdatedReplicas:    replicas,
		ReadyReplicas:      replicas,
		AvailableReplicas:  replicas,
	}
	return c.Status().Update(ctx, &deployment)
}
