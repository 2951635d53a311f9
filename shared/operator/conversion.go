package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhookFlag is what tells an operator where to serve conversions.
const webhookFlag = "webhook-bind-address"

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
			"reaches no process of this machine: use `make deploy` with the same OVERLAY, or an OVERLAY without conversions", converting[0].GetKind(), converting[0].GetName())
	}
	if !p.has(webhookFlag) {
		return fmt.Errorf("running the operator as a process: %s %s has its objects converted by the operator, which has no flag --%s to say where",
			converting[0].GetKind(), converting[0].GetName(), webhookFlag)
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

// checkWebhookPort says which port is meant, if another process has taken it since the last process of the operator ended.
func (p *Process) checkWebhookPort(ctx context.Context) error {
	if p.webhookPort == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", p.webhookPort))
	if err != nil {
		return fmt.Errorf("the CRD has its objects converted at port %d, where another process listens by now; run the operator anew: %w", p.webhookPort, err)
	}
	return listener.Close()
}

// redirectConversions leads from the Services of CRDs to a port of the machine that the API server runs on. The Services stay what
// CRDs name: it is their names that the certificate is for.
func redirectConversions(objects, crds []*unstructured.Unstructured, port int) error {
	var errs []error
	for _, crd := range crds {
		reference, _, _ := unstructured.NestedMap(crd.Object, conversionService...)
		errs = append(errs, unstructured.SetNestedField(crd.Object, int64(port), slices.Concat(conversionService, []string{"port"})...))
		i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool {
			return u.GetKind() == "Service" && u.GetNamespace() == reference["namespace"] && u.GetName() == reference["name"]
		})
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s %s has its objects converted at Service %v/%v, which the configuration has not",
				crd.GetKind(), crd.GetName(), reference["namespace"], reference["name"]))
			continue
		}
		objects[i].Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
	}
	return errors.Join(errs...)
}
