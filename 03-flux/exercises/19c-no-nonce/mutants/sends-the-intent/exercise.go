package nononce

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
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
	case "", "Sending":
	default:
		return nil
	}
	letter, err = write(ctx, client, letter, "Sending")
	if err != nil {
		return err
	}
	_, err = write(ctx, client, letter, send(ctx, office, letter.Data["text"]))
	return err
}

func send(ctx context.Context, office post.Office, text string) string {
	switch err := office.Send(ctx, text); {
	case err == nil:
		return "Sent"
	case errors.Is(err, post.ErrRejected):
		return "Rejected"
	default:
		return "Unknown"
	}
}

// write sends the whole object with its resourceVersion: the API server rejects it if another has written meanwhile.
func write(ctx context.Context, client typedcorev1.ConfigMapInterface, letter *corev1.ConfigMap, state string) (*corev1.ConfigMap, error) {
	letter.Data["state"] = state
	return client.Update(ctx, letter, metav1.UpdateOptions{})
}
