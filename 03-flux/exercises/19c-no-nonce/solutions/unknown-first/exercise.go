package nononce

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	if letter.Data["state"] != "" {
		return nil
	}
	// Until the result is there, nothing is known: that is what another controller finds after a crash.
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"data":{"state":"Unknown"}}`, letter.ResourceVersion)
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	switch err := office.Send(ctx, letter.Data["text"]); {
	case err == nil:
		patch = []byte(`{"data":{"state":"Sent"}}`)
	case errors.Is(err, post.ErrRejected):
		patch = []byte(`{"data":{"state":"Rejected"}}`)
	default:
		return nil
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
