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
	if err != nil {
		return err
	}
	switch letter.Data["state"] {
	case "":
	case "Sending":
		letter.Data["state"] = "Unknown"
		_, err := client.Update(ctx, letter, metav1.UpdateOptions{})
		return err
	default:
		return nil
	}
	letter.Data["state"] = "Sending"
	written, err := client.Update(ctx, letter, metav1.UpdateOptions{})
	if err != nil {
		again, getErr := client.Get(ctx, name, metav1.GetOptions{})
		if getErr != nil || again.Data["state"] != "Sending" {
			return err
		}
		written = again
	}
	letter = written
	err = office.Send(ctx, letter.Data["text"])
	switch {
	case err == nil:
		letter.Data["state"] = "Sent"
	case errors.Is(err, post.ErrRejected):
		letter.Data["state"] = "Rejected"
	default:
		letter.Data["state"] = "Unknown"
	}
	_, err = client.Update(ctx, letter, metav1.UpdateOptions{})
	return err
}
