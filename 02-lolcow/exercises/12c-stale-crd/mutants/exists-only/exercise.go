package stalecrd

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(_ context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	resources, err := client.ServerResourcesForGroupVersion("my.domain/v1alpha1")
	if err != nil {
		return fmt.Errorf("asking for the kinds of my.domain: %w", err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == "Lolcow" {
			return nil
		}
	}
	return errors.New("the CRD of Lolcow is not installed, and without it there is no port")
}
