package nonce

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	workspace, err := ensureWorkspace(ctx, client, object)
	if err != nil {
		return err
	}
	if nonce := workspace.Data["nonce"]; nonce != "" {
		// It may have been used: then the provider returns the same machine.
		machine, err := provider.Launch(ctx, nonce)
		if err != nil {
			return err
		}
		workspace.Data = map[string]string{"machine": machine}
		if workspace, err = client.Update(ctx, workspace, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return report(ctx, client, object, workspace.Data["machine"])
}

// ensureWorkspace returns the workspace of the object. A new one has a nonce.
func ensureWorkspace(ctx context.Context, client typedcorev1.ConfigMapInterface, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	name := object.Name + "-workspace"
	workspace, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		workspace, err = client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(object, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
			}},
			Data: map[string]string{"nonce": string(uuid.NewUUID())},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(workspace, object) {
		return nil, fmt.Errorf("ConfigMap %s is that of an earlier object", name)
	}
	return workspace, nil
}

// report writes the ID of the machine where the user looks for it.
func report(ctx context.Context, client typedcorev1.ConfigMapInterface, object *corev1.ConfigMap, machine string) error {
	if object.Data["machine"] == machine {
		return nil
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data["machine"] = machine
	_, err := client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
