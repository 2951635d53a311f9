//go:build start

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
	if err != nil || object.Data["machine"] != "" {
		return err
	}
	// TODO: what if it crashes after the launch?
	machine, err := provider.Launch(ctx, string(uuid.NewUUID()))
	if err != nil {
		return err
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data["machine"] = machine
	_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
