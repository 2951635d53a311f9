package nonce

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// The record has the UID in its name: one of an earlier object is another one.
	record, err := client.Get(ctx, name+"-"+string(object.UID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		record, err = launch(ctx, client, provider, object)
	}
	if err != nil {
		return err
	}
	machine := record.Data["machine"]
	if object.Data["machine"] == machine {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"data":{"machine":%q}}`, object.UID, machine)
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// launch launches the machine, and records its ID.
func launch(ctx context.Context, client typedcorev1.ConfigMapInterface, provider cloud.Provider, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	machine, err := provider.Launch(ctx, string(object.UID))
	if err != nil {
		return nil, err
	}
	return client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: object.Name + "-" + string(object.UID),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: object.Name, UID: object.UID,
			}},
		},
		Data: map[string]string{"machine": machine},
	}, metav1.CreateOptions{})
}
