package controller

import (
	"context"
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/internal/plan"
)

// BenchmarkNodesOfARound compares two ways to detect that the nodes of a DaemonSet differ from the plan: roundOf reads
// the affinity, as the operator does, and a server-side apply would need the fields of one owner. Either is done for up
// to 32 rounds in each reconciliation.
func BenchmarkNodesOfARound(b *testing.B) {
	s, err := startServer()
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(s.env.Config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := c.Create(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
	round := plan.Round{Nodes: manyNodes(5000)}
	goop := aGoop()
	goop.Namespace, goop.UID = namespace.Name, "1"
	live := applied(b.Context(), b, c, desiredRound(goop, round, testImages))
	b.Run("roundOf", func(b *testing.B) {
		for b.Loop() {
			if !same(roundOf(0, live), round) {
				b.Fatal("roundOf returned another round")
			}
		}
	})
	b.Run("Extract", func(b *testing.B) {
		for b.Loop() {
			extracted, err := appsv1ac.ExtractDaemonSet(live, "bench")
			if err != nil {
				b.Fatal(err)
			}
			if got := extracted.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(got) != len(round.Nodes) {
				b.Fatalf("%d terms", len(got))
			}
		}
	})
	b.Run("size", func(b *testing.B) {
		whole, _ := json.Marshal(live)
		reduced, _ := transform(live.DeepCopy())
		text, _ := json.Marshal(reduced)
		b.ReportMetric(float64(len(whole)), "bytes-whole")
		b.ReportMetric(float64(len(text)), "bytes-cached")
	})
}

// applied returns the DaemonSet after a server-side apply.
func applied(ctx context.Context, b *testing.B, c client.Client, desired *appsv1.DaemonSet) *appsv1.DaemonSet {
	b.Helper()
	desired.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		b.Fatal(err)
	}
	delete(fields, "status")
	text, err := json.Marshal(fields)
	if err != nil {
		b.Fatal(err)
	}
	configuration := &appsv1ac.DaemonSetApplyConfiguration{}
	if err := json.Unmarshal(text, configuration); err != nil {
		b.Fatal(err)
	}
	if err := c.Apply(ctx, configuration, client.FieldOwner("bench")); err != nil {
		b.Fatal(err)
	}
	live := &appsv1.DaemonSet{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(desired), live); err != nil {
		b.Fatal(err)
	}
	return live
}
