// Command manager is the Foo operator on controller-runtime. The one on client-go alone is cmd/raw: both take the same
// flags and do the same.
package main

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/01-informers/internal/managed"
	"example.com/workbook/01-informers/internal/operator"
	// +kubebuilder:scaffold:imports
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(managed.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	os.Exit(operator.Main("manager", run))
}

// run runs the manager with the controller of Foo, and with those of other kinds that the kubebuilder CLI adds at the markers.
func run(ctx context.Context, config *rest.Config, options operator.Options) error {
	setupLog := klog.FromContext(ctx)
	setupLog.Info("Starting", "implementation", "managed")
	return managed.RunWith(ctx, config, options, scheme, func(mgr ctrl.Manager) error {
		// +kubebuilder:scaffold:builder
		return nil
	})
}
