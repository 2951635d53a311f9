package validator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
)

// NewHandler returns the handler of a validating webhook for Lolcows. The scheme of the client knows them.
func NewHandler(c client.Client) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if request.Operation == admissionv1.Delete {
			return admission.Allowed("")
		}
		var lolcow, before v1beta1.Lolcow
		err := json.Unmarshal(request.Object.Raw, &lolcow)
		if request.Operation == admissionv1.Update {
			err = errors.Join(err, json.Unmarshal(request.OldObject.Raw, &before))
		}
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		known, fresh := numbers(before), map[int32]int{}
		for i, port := range lolcow.Spec.Ports {
			if !known[port.Port] {
				fresh[port.Port] = i
			}
		}
		if len(fresh) == 0 {
			return admission.Allowed("") // also while Lolcows cannot be listed
		}
		var others v1beta1.LolcowList
		if err := c.List(ctx, &others); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		for _, other := range others.Items {
			isSelf := other.Namespace == lolcow.Namespace && other.Name == lolcow.Name
			for _, port := range other.Spec.Ports {
				if i, found := fresh[port.Port]; found && !isSelf {
					return admission.Denied(fmt.Sprintf("spec.ports[%d].port: the Lolcow %s/%s has the port %d",
						i, other.Namespace, other.Name, port.Port))
				}
			}
		}
		return admission.Allowed("")
	})
}

func numbers(lolcow v1beta1.Lolcow) map[int32]bool {
	all := map[int32]bool{}
	for _, port := range lolcow.Spec.Ports {
		all[port.Port] = true
	}
	return all
}
