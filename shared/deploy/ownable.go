package deploy

import (
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownableTimeout is more than the 30 s after which the API server forgets which kinds it knows.
const ownableTimeout = 45 * time.Second

// WaitOwnable waits until objects of the CRDs among the objects can be owners. The admission plugin
// OwnerReferencesPermissionEnforcement looks kinds up in a list that the API server renews every 30
// seconds only: until then it rejects every dependent of a new kind with "cannot find RESTMapping", and
// an operator that starts right after its CRD sees its first writes fail.
func WaitOwnable(ctx context.Context, out io.Writer, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	// An account that may create ConfigMaps and is no administrator: for those the plugin asks
	// nothing. Any cluster has it.
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate.UserName = "system:serviceaccount:kube-system:root-ca-cert-publisher"
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	for _, crd := range objects {
		if !isCRD(crd) {
			continue
		}
		child, err := childOf(crd)
		if err != nil {
			return err
		}
		err = eventually(ctx, out, condition{
			what: "objects of " + crd.GetName() + " to be accepted as owners", limit: ownableTimeout,
			met: func(ctx context.Context) (bool, error) {
				// Every other response, a rejection too, means that the kind is known or that the cluster
				// does not have the plugin.
				err := c.Create(ctx, child.DeepCopy(), client.DryRunAll)
				if err != nil && strings.Contains(err.Error(), "cannot find RESTMapping") {
					return false, err
				}
				return true, nil
			},
			why: func(context.Context) string { return "the API server looks for new kinds every 30 seconds" },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// childOf makes an object whose owner, which does not exist, is of the CRD's kind.
func childOf(crd *unstructured.Unstructured) (*corev1.ConfigMap, error) {
	gvk, err := kindOf(crd)
	if err != nil {
		return nil, err
	}
	yes := true
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "harness-child", Namespace: metav1.NamespaceDefault,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "owner",
			UID: types.UID("00000000-0000-0000-0000-000000000000"), BlockOwnerDeletion: &yes,
		}},
	}}, nil
}
