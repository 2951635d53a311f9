//go:build start

package stalecrd

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(ctx context.Context, config *rest.Config) error {
	// TODO: ask the API server.
	return errors.New("the API server was not asked")
}
