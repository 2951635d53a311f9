// Package faults explores the Goop operator under faults that no test describes.
package faults

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/controller"
	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

func TestFaults(t *testing.T) {
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{
			Scheme: scheme(), CRDs: []string{"../../../config/crd/bases"}, Cache: controller.CacheOptions(),
			ReadYourWrites: true, Setup: setup,
		},
		Kinds:      []client.Object{&v1alpha1.Goop{}, &appsv1.DaemonSet{}, &corev1.ConfigMap{}},
		Once:       []client.Object{&appsv1.DaemonSet{}},
		Actors:     []faults.Actor{actors.Nodes{}, actors.DaemonSets{}, actors.Kubelet{End: end}, actors.GarbageCollector{}},
		Story:      story,
		Anytime:    anytime,
		Invariants: []faults.Invariant{owned, runsAgain, keeps, ends, stops, reported},
		Unordered:  map[string]string{"$.data.record": "they are in the order in which the operator noticed the results"},
		Role:       "../../../config/rbac/role.yaml",
	})
}
