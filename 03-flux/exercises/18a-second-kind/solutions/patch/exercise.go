package secondkind

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/exercises/internal/defaults"
)

var errNotOwned = errors.New("the FluxSetup of that name is controlled by another owner, or by none")

// Reconcile keeps the FluxSetup of a Flux.
func Reconcile(ctx context.Context, c client.Client, operator defaults.Defaults, key client.ObjectKey) error {
	flux, setup := &v1alpha1.Flux{}, &v1alpha1.FluxSetup{}
	if err := c.Get(ctx, key, flux); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := c.Get(ctx, key, setup); client.IgnoreNotFound(err) != nil {
		return err
	}
	switch {
	case setup.UID == "":
		return c.Create(ctx, &v1alpha1.FluxSetup{
			ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(flux, v1alpha1.SchemeGroupVersion.WithKind("Flux")),
			}},
			Spec: operator.Resolve(flux),
		})
	case !metav1.IsControlledBy(setup, flux):
		return errNotOwned
	case follows(setup.Spec, flux.Spec):
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": setup.UID},
		"spec": map[string]any{
			"suspend": flux.Spec.Suspend, "startupTimeoutSeconds": flux.Spec.StartupTimeoutSeconds, "activeDeadlineSeconds": flux.Spec.ActiveDeadlineSeconds,
		},
	})
	if err != nil {
		return err
	}
	return c.Patch(ctx, setup, client.RawPatch(types.MergePatchType, patch))
}

func follows(setup v1alpha1.FluxSetupSpec, flux v1alpha1.FluxSpec) bool {
	return setup.Suspend == flux.Suspend && setup.StartupTimeoutSeconds == flux.StartupTimeoutSeconds &&
		ptr.Equal(setup.ActiveDeadlineSeconds, flux.ActiveDeadlineSeconds)
}
