package nonce

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/03-flux/exercises/internal/cloud"
)

// Reconcile launches one machine for a ConfigMap, and writes its ID into data.machine.
func Reconcile(ctx context.Context, client typedcorev1.ConfigMapInterface, provider cloud.Provider, name string) error {
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.Data["machine"] != "" {
		return nil
	}
	if object.Data["nonce"] == "" {
		object.Data = map[string]string{"nonce": string(uuid.NewUUID())}
		if object, err = client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	// It may have been used: then the provider returns the same machine.
	machine, err := provider.Launch(ctx, object.Data["nonce"])
	if err != nil {
		return err
	}
	object.Data = map[string]string{"machine": machine}
	_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
