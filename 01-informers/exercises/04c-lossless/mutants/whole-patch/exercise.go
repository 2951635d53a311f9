package lossless

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Policy is a NetworkPolicy as it was when this program was written.
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		PodSelector metav1.LabelSelector `json:"podSelector"`
		Ingress     []Rule               `json:"ingress,omitempty"`
	} `json:"spec"`
}

// Rule allows traffic to ports.
type Rule struct {
	Ports []Port `json:"ports,omitempty"`
}

// Port is one of them.
type Port struct {
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
}

// Label sets a label of a NetworkPolicy.
func Label(ctx context.Context, policies dynamic.ResourceInterface, name, key, value string) error {
	object, err := policies.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var policy Policy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy); err != nil {
		return err
	}
	if policy.Labels == nil {
		policy.Labels = map[string]string{}
	}
	policy.Labels[key] = value
	patch, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	_, err = policies.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
