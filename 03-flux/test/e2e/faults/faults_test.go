// Package faults explores the Flux operator, both of its controllers together, under faults that no test describes.
package faults

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/controller"
	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

func TestFaults(t *testing.T) {
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{
			Scheme: scheme(), CRDs: []string{"../../../config/crd/bases"}, Cache: controller.CacheOptions(),
			ReadYourWrites: true, Setup: setup,
		},
		Kinds:      []client.Object{&v1alpha1.Flux{}, &v1alpha1.FluxSetup{}, &batchv1.Job{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{}},
		Once:       []client.Object{&batchv1.Job{}},
		Actors:     []faults.Actor{actors.Jobs{}, brokers{}, actors.GarbageCollector{}},
		Story:      story,
		Anytime:    anytime,
		Invariants: []faults.Invariant{owned, once, alone, ends, reported},
		Role:       "../../../config/rbac/role.yaml",
	})
}
