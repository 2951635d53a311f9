package validator

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
)

// NewHandler returns the handler of a validating webhook for Lolcows. The scheme of the client knows them.
func NewHandler(c client.Client) admission.Handler {
	return admission.WithValidator(c.Scheme(), &validator{c})
}

type validator struct{ reader client.Reader }

// ValidateCreate checks all ports.
func (v *validator) ValidateCreate(ctx context.Context, lolcow *v1beta1.Lolcow) (admission.Warnings, error) {
	return nil, v.validate(ctx, lolcow, nil)
}

// ValidateUpdate checks the ports that the Lolcow did not have.
func (v *validator) ValidateUpdate(ctx context.Context, before, lolcow *v1beta1.Lolcow) (admission.Warnings, error) {
	return nil, v.validate(ctx, lolcow, before.Spec.Ports)
}

// ValidateDelete allows each deletion.
func (v *validator) ValidateDelete(context.Context, *v1beta1.Lolcow) (admission.Warnings, error) {
	return nil, nil
}

func (v *validator) validate(ctx context.Context, lolcow *v1beta1.Lolcow, known []v1beta1.LolcowPort) error {
	fresh := map[int32]*field.Path{}
	for i, port := range lolcow.Spec.Ports {
		fresh[port.Port] = field.NewPath("spec", "ports").Index(i).Child("port")
	}
	for _, port := range known {
		delete(fresh, port.Port)
	}
	if len(fresh) == 0 {
		return nil
	}
	var others v1beta1.LolcowList
	if err := v.reader.List(ctx, &others); err != nil {
		return apierrors.NewInternalError(err)
	}
	var errs field.ErrorList
	for _, other := range others.Items {
		for _, port := range other.Spec.Ports {
			if path := fresh[port.Port]; path != nil && other.UID != lolcow.UID {
				errs = append(errs, field.Invalid(path, port.Port, "the Lolcow "+other.Namespace+"/"+other.Name+" has this port"))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("Lolcow").GroupKind(), lolcow.Name, errs)
}
