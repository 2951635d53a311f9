package stalecrd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	schema, err := client.RESTClient().Get().AbsPath("/openapi/v3/apis/my.domain/v1alpha1").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading the schema of Lolcow: %w", err)
	}
	if !bytes.Contains(schema, []byte(`"port"`)) {
		return errors.New("the CRD of Lolcow is older than this operator: there is no port; install the CRD again")
	}
	return nil
}
