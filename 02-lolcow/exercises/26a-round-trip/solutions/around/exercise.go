package roundtrip

import (
	"encoding/json"
	"slices"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
)

// Annotation has what v1alpha1 has no field for. Only the v1alpha1 form of a Lolcow has it.
const Annotation = "my.domain/conversion-data"

// rest is what v1alpha1 does not show: the ports before the page, and those after it.
type rest struct {
	Before []v1beta1.LolcowPort `json:"before,omitempty"`
	After  []v1beta1.LolcowPort `json:"after,omitempty"`
}

// Conversions returns the functions that the converter calls.
func Conversions() (
	func(*v1alpha1.Lolcow) (*v1beta1.Lolcow, error),
	func(*v1beta1.Lolcow) (*v1alpha1.Lolcow, error),
) {
	return ToBeta, ToAlpha
}

func isPage(port v1beta1.LolcowPort) bool { return port.Name == v1beta1.PagePort }

// ToBeta converts a Lolcow to v1beta1.
func ToBeta(from *v1alpha1.Lolcow) (*v1beta1.Lolcow, error) {
	from = from.DeepCopy()
	var kept rest
	if json.Unmarshal([]byte(from.Annotations[Annotation]), &kept) != nil {
		kept = rest{}
	}
	delete(from.Annotations, Annotation)
	kept.Before, kept.After = slices.DeleteFunc(kept.Before, isPage), slices.DeleteFunc(kept.After, isPage)
	var page []v1beta1.LolcowPort
	if from.Spec.Port != 0 {
		page = []v1beta1.LolcowPort{{Name: v1beta1.PagePort, Port: from.Spec.Port}}
	}
	return &v1beta1.Lolcow{
		ObjectMeta: from.ObjectMeta,
		Spec:       v1beta1.LolcowSpec{Greeting: from.Spec.Greeting, Ports: slices.Concat(kept.Before, page, kept.After)},
		Status:     v1beta1.LolcowStatus(from.Status),
	}, nil
}

// ToAlpha converts a Lolcow to v1alpha1.
func ToAlpha(from *v1beta1.Lolcow) (*v1alpha1.Lolcow, error) {
	from = from.DeepCopy()
	to := &v1alpha1.Lolcow{
		ObjectMeta: from.ObjectMeta,
		Spec:       v1alpha1.LolcowSpec{Greeting: from.Spec.Greeting},
		Status:     v1alpha1.LolcowStatus(from.Status),
	}
	kept := rest{Before: from.Spec.Ports}
	for i, port := range from.Spec.Ports {
		if isPage(port) {
			to.Spec.Port = port.Port
			kept = rest{from.Spec.Ports[:i], from.Spec.Ports[i+1:]}
		}
	}
	delete(to.Annotations, Annotation)
	if len(kept.Before)+len(kept.After) == 0 {
		return to, nil
	}
	text, err := json.Marshal(kept)
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[Annotation] = string(text)
	return to, err
}
