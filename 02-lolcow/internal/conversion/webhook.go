package conversion

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// SetupWebhookWithManager serves conversions at /convert of the manager's webhook server.
func SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1beta1.Lolcow{}).
		WithConverter(conversion.NewHubSpokeConverter(&v1beta1.Lolcow{},
			conversion.NewSpokeConverter(&v1alpha1.Lolcow{},
				func(_ context.Context, from *v1beta1.Lolcow, to *v1alpha1.Lolcow) error {
					FromHub(from, to)
					return nil
				},
				func(_ context.Context, from *v1alpha1.Lolcow, to *v1beta1.Lolcow) error { ToHub(from, to); return nil }))).
		Complete()
}
