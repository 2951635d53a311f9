//go:build start

package exitcode

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Run creates a Goop, waits until it has ended, deletes it, and returns the exit code.
func Run(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	if err := c.Create(ctx, goop); err != nil {
		return 0, err
	}
	// TODO: wait for the end, and clean up.
	return 0, nil
}
