package raw

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

// clients are the clientset of Kubernetes' own kinds and the generated one of Foo.
type clients struct {
	kubernetes kubernetes.Interface
	foos       versioned.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	// One HTTP client for both: they share connections.
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	builtin, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	foos, err := versioned.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client for Foos: %w", err)
	}
	return &clients{kubernetes: builtin, foos: foos}, nil
}

// check lists one Foo, so that what waiting does not help ends the process with a clear message: no such cluster, an unknown
// user, a missing permission, no CRD. An informer would try again for ever, and report it in the log only.
func (c *clients) check(ctx context.Context) error {
	_, err := c.foos.FooV1alpha1().Foos(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	// A shutdown in between is no failure.
	if ctx.Err() == nil {
		return foo.StartError(err)
	}
	return nil
}
