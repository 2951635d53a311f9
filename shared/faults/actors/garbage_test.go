package actors_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/shared/faults"
	"example.com/workbook/shared/faults/actors"
)

// A Deployment owns two ConfigMaps, of which the older one has a finalizer, and the younger one owns a Secret.
func TestGarbageCollectorInTheForeground(t *testing.T) {
	few(t)
	own := func(owner, one client.Object) error {
		return controllerutil.SetControllerReference(owner, one, clientgoscheme.Scheme)
	}
	var all story
	all.there("create all", func(ctx context.Context, s *faults.State) error {
		meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: s.Namespace} }
		labels := map[string]string{"app": "owner"}
		owner := &appsv1.Deployment{ObjectMeta: meta("owner"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
			},
		}}
		older, younger, secret := &corev1.ConfigMap{ObjectMeta: meta("older")}, &corev1.ConfigMap{ObjectMeta: meta("younger")}, &corev1.Secret{ObjectMeta: meta("secret")}
		older.Finalizers = []string{"example.com/keep"}
		for _, one := range []struct{ owner, object client.Object }{{nil, owner}, {owner, older}, {owner, younger}, {younger, secret}} {
			if one.owner != nil {
				if err := own(one.owner, one.object); err != nil {
					return err
				}
			}
			if err := s.Client.Create(ctx, one.object); err != nil {
				return err
			}
		}
		return nil
	}, 4)
	all.there("delete the owner", func(ctx context.Context, s *faults.State) error {
		owner := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: s.Namespace}}
		if err := s.Client.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		// It is acted on at once: in steady state nothing may keep a finalizer.
		for range 20 {
			if acted, err := (actors.GarbageCollector{}).Act(ctx, s); err != nil || !acted {
				break
			}
		}
		if err := count(s, 2); err != nil {
			return err
		}
		return faults.Change(ctx, s, "older", func(one *corev1.ConfigMap) { one.Finalizers = nil })
	}, 0)
	faults.Run(t, faults.Suite{
		Operator: faults.Operator{Scheme: clientgoscheme.Scheme, Setup: onlooker},
		Kinds:    []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}},
		Actors:   []faults.Actor{actors.GarbageCollector{}},
		Story:    all,
	})
}
