package bench

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/e2e"
)

// operatorOwner is the field owner of the operator.
const operatorOwner = "lolcow-controller"

// The bare client is compared with the operator: it has to write the same fields.
func TestBareClientWritesWhatTheOperatorDoes(t *testing.T) {
	t.Setenv("CLUSTER_NAME", config.ClusterName()+"-bench")
	t.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx := t.Context()
	env, err := e2e.Setup(ctx, os.Stdout, stage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-", Labels: map[string]string{cluster.ManualPodsLabel: "true"}}}
	if err := env.Client.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "cow"}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"}}
	if err := env.Client.Create(ctx, lolcow); err != nil {
		t.Fatal(err)
	}
	for lolcow.Status.ObservedGeneration == 0 {
		time.Sleep(50 * time.Millisecond)
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(lolcow), lolcow); err != nil {
			t.Fatal(err)
		}
	}
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	for _, dependent := range []client.Object{deployment, service} {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(lolcow), dependent); err != nil {
			t.Fatal(err)
		}
	}
	if owned, err := appsv1ac.ExtractDeployment(deployment, operatorOwner); err != nil || !apiequality.Semantic.DeepEqual(owned, deploymentOf(lolcow, env.Images["lolcow"])) {
		t.Errorf("another Deployment (%v): the operator owns\n%s", err, asText(owned))
	}
	if owned, err := corev1ac.ExtractService(service, operatorOwner); err != nil || !apiequality.Semantic.DeepEqual(owned, serviceOf(lolcow)) {
		t.Errorf("another Service (%v): the operator owns\n%s", err, asText(owned))
	}
	is := lolcow.Status.DeepCopy()
	lolcow.Status = v1alpha1.LolcowStatus{}
	setStatus(lolcow, is.Port)
	lolcow.Status.Conditions[0].LastTransitionTime = is.Conditions[0].LastTransitionTime
	if !apiequality.Semantic.DeepEqual(*is, lolcow.Status) {
		t.Errorf("another status: the operator writes\n%s", asText(is))
	}
}

func asText(value any) string {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
