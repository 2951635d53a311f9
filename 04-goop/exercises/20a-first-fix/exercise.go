//go:build start

package firstfix

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Reconcile corrects the first thing that is out of order in a chain.
func Reconcile(ctx context.Context, client typedcorev1.ConfigMapInterface, name string) error {
	chain, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	length, err := strconv.Atoi(chain.Data["length"])
	if err != nil {
		return err
	}
	links, err := client.List(ctx, metav1.ListOptions{LabelSelector: "chain=" + name})
	if err != nil {
		return err
	}
	// TODO: compare the links with the chain, and write once.
	_, _ = length, links
	return nil
}
