//go:build start

package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Run keeps a copy of the source in each namespace that targets selects, until ctx ends. At each value from verify it compares all of
// them with what the API server has.
func Run(ctx context.Context, client kubernetes.Interface, source types.NamespacedName, targets labels.Selector, verify <-chan time.Time) error {
	// TODO: everything.
	<-ctx.Done()
	return nil
}
