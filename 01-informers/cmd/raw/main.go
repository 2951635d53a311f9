// Command raw is the Foo operator on client-go alone. The one on controller-runtime is cmd/main.go: both take the same
// flags and do the same.
package main

import (
	"context"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/raw"
)

func main() {
	os.Exit(operator.Main("raw", run))
}

func run(ctx context.Context, config *rest.Config, options operator.Options) error {
	klog.FromContext(ctx).Info("Starting", "implementation", "raw")
	return raw.Run(ctx, config, options)
}
