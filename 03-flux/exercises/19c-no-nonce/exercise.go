//go:build start

package nononce

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/03-flux/exercises/internal/post"
)

// Reconcile sends the letter of a ConfigMap, at most once.
func Reconcile(ctx context.Context, client typedcorev1.ConfigMapInterface, office post.Office, name string) error {
	letter, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || letter.Data["state"] != "" {
		return err
	}
	// TODO: what if it crashes between the call and the write?
	err = office.Send(ctx, letter.Data["text"])
	switch {
	case err == nil:
		letter.Data["state"] = "Sent"
	case errors.Is(err, post.ErrRejected):
		letter.Data["state"] = "Rejected"
	default:
		return err
	}
	_, err = client.Update(ctx, letter, metav1.UpdateOptions{})
	return err
}
