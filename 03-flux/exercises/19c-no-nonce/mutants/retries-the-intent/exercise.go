package nononce

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

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
		return setState(ctx, client, name, "Unknown")
	default:
		return nil
	}
	if err := setState(ctx, client, name, "Sending"); err != nil {
		return err
	}
	err = office.Send(ctx, letter.Data["text"])
	switch {
	case err == nil:
		return setState(ctx, client, name, "Sent")
	case errors.Is(err, post.ErrRejected):
		return setState(ctx, client, name, "Rejected")
	}
	return setState(ctx, client, name, "Unknown")
}

func setState(ctx context.Context, client typedcorev1.ConfigMapInterface, name, state string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		letter, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		letter.Data["state"] = state
		_, err = client.Update(ctx, letter, metav1.UpdateOptions{})
		return err
	})
}
