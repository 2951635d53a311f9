// Package faults explores the Lolcow operator under faults that no test describes.
package faults

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/internal/controller"
	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

func TestFaults(t *testing.T) {
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{
			Scheme: scheme(), CRDs: []string{"../../../config/crd/bases"}, Cache: controller.CacheOptions(),
			ReadYourWrites: true, Setup: setup,
		},
		Kinds:      []client.Object{&v1alpha1.Lolcow{}, &appsv1.Deployment{}, &corev1.Service{}},
		Actors:     []faults.Actor{actors.Deployments{}, actors.GarbageCollector{}},
		Story:      story,
		Anytime:    anytime,
		Invariants: []faults.Invariant{faults.Owned(&v1alpha1.Lolcow{}), owned, reported},
		Role:       "../../../config/rbac/role.yaml",
	})
}
