package expect

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestConditionsOf(t *testing.T) {
	withStatus := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": "RollingOut", "observedGeneration": int64(3)},
		}},
	}}
	for name, test := range map[string]struct {
		obj  client.Object
		want []metav1.Condition
	}{
		"a custom kind":   {withStatus, []metav1.Condition{{Type: "Ready", Status: "False", Reason: "RollingOut", ObservedGeneration: 3}}},
		"no status":       {&corev1.ConfigMap{}, nil},
		"an empty status": {&corev1.Pod{}, nil},
		"a built-in kind": {&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}}}}, []metav1.Condition{{Type: "Ready", Status: "True"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := conditionsOf(test.obj)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("got %+v, want %+v", got[i], test.want[i])
				}
			}
		})
	}
}
