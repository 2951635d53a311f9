package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// conversionService is the path, in a CRD, of the reference to the Service that its objects are converted at.
var conversionService = []string{"spec", "conversion", "webhook", "clientConfig", "service"}

// setupConversions has the API server reach the conversion webhook of the operator as a process, if the configuration has one.
func (p *Process) setupConversions(ctx context.Context) error {
	converting := slices.DeleteFunc(slices.Clone(p.manifest.rest), func(u *unstructured.Unstructured) bool { return !converts(u) })
	if len(converting) == 0 {
		return nil
	}
	if p.options.Cluster.RunsContainers() {
		return fmt.Errorf("running the operator as a process: %s %s has its objects converted by the operator, and the API server of this cluster "+
			"reaches no process of this machine: use `make deploy`, or an OVERLAY without conversions", converting[0].GetKind(), converting[0].GetName())
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return err
	}
	p.webhookPort = ports[0]
	return redirectConversions(p.manifest.rest, converting, p.webhookPort)
}

func converts(object *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedMap(object.Object, conversionService...)
	return object.GetKind() == "CustomResourceDefinition" && found && err == nil
}

// redirectConversions leads from the Services of CRDs to a port of the machine that the API server runs on. The Services stay what
// CRDs name: it is their names that the certificate is for.
func redirectConversions(objects, crds []*unstructured.Unstructured, port int) error {
	var errs []error
	for _, crd := range crds {
		reference, _, _ := unstructured.NestedMap(crd.Object, conversionService...)
		errs = append(errs, unstructured.SetNestedField(crd.Object, int64(port), slices.Concat(conversionService, []string{"port"})...))
		for _, object := range objects {
			if object.GetKind() == "Service" && object.GetNamespace() == reference["namespace"] && object.GetName() == reference["name"] {
				object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
			}
		}
	}
	return errors.Join(errs...)
}
