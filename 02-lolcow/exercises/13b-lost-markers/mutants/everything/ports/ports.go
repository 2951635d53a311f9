// Package ports makes Services for Lolcows.
package ports

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// EnsureService creates the Service of a Lolcow, if there is none.
func EnsureService(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
	var service corev1.Service
	err := c.Get(ctx, client.ObjectKeyFromObject(lolcow), &service)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return c.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"lolcow": lolcow.Name},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	})
}
