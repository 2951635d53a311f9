package roundtrip

import (
	"encoding/json"
	"maps"
	"slices"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
)

// Annotation has what v1alpha1 has no field for. Only the v1alpha1 form of a Lolcow has it.
const Annotation = "my.domain/conversion-data"

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
	to := &v1beta1.Lolcow{
		ObjectMeta: from.ObjectMeta,
		Status:     v1beta1.LolcowStatus{ObservedGeneration: from.Status.ObservedGeneration},
	}
	to.Annotations = maps.Clone(from.Annotations)
	delete(to.Annotations, Annotation)
	// An annotation that cannot be read is as none.
	if json.Unmarshal([]byte(from.Annotations[Annotation]), &to.Spec) != nil {
		to.Spec = v1beta1.LolcowSpec{}
	}
	// What v1alpha1 shows is newer than what the annotation says of it.
	to.Spec.Greeting = from.Spec.Greeting
	place := max(slices.IndexFunc(to.Spec.Ports, isPage), 0)
	to.Spec.Ports = slices.DeleteFunc(to.Spec.Ports, isPage)
	if from.Spec.Port != 0 {
		to.Spec.Ports = slices.Insert(to.Spec.Ports, place, v1beta1.LolcowPort{Name: v1beta1.PagePort, Port: from.Spec.Port})
	}
	return to, nil
}

// ToAlpha converts a Lolcow to v1alpha1.
func ToAlpha(from *v1beta1.Lolcow) (*v1alpha1.Lolcow, error) {
	text, err := json.Marshal(from.Spec)
	if err != nil {
		return nil, err
	}
	to := &v1alpha1.Lolcow{
		ObjectMeta: from.ObjectMeta,
		Spec:       v1alpha1.LolcowSpec{Greeting: from.Spec.Greeting},
		Status:     v1alpha1.LolcowStatus{ObservedGeneration: from.Status.ObservedGeneration},
	}
	if i := slices.IndexFunc(from.Spec.Ports, isPage); i >= 0 {
		to.Spec.Port = from.Spec.Ports[i].Port
	}
	to.Annotations = map[string]string{Annotation: string(text)}
	for name, value := range from.Annotations {
		if name != Annotation {
			to.Annotations[name] = value
		}
	}
	return to, nil
}
