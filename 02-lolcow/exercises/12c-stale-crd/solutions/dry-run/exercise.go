package stalecrd

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	probe := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"},
		Spec:       v1alpha1.LolcowSpec{Port: new(int32(30000))},
	}
	if err := c.Create(ctx, probe, client.DryRunAll); err != nil {
		return fmt.Errorf("creating a Lolcow to see whether it keeps its port: %w", err)
	}
	if probe.Spec.Port == nil {
		return errors.New("the CRD of Lolcow is older than this operator: the API server removes spec.port; install the CRD again")
	}
	return nil
}
