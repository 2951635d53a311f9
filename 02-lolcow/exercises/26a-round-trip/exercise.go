//go:build start

package roundtrip

import (
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

// ToBeta converts a Lolcow to v1beta1.
func ToBeta(from *v1alpha1.Lolcow) (*v1beta1.Lolcow, error) {
	// TODO: convert the port, and what is in the annotation.
	return &v1beta1.Lolcow{ObjectMeta: from.ObjectMeta}, nil
}

// ToAlpha converts a Lolcow to v1alpha1.
func ToAlpha(from *v1beta1.Lolcow) (*v1alpha1.Lolcow, error) {
	// TODO: convert the ports.
	return &v1alpha1.Lolcow{ObjectMeta: from.ObjectMeta}, nil
}
