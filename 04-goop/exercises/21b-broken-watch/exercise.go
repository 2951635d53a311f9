//go:build start

package brokenwatch

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Wait waits until the Goop has ended, and returns its exit code.
func Wait(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	w, err := c.Watch(ctx, &v1alpha1.GoopList{}, client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: goop.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: goop.ResourceVersion}})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		seen, isGoop := event.Object.(*v1alpha1.Goop)
		if event.Type == watch.Deleted || !isGoop || seen.UID != goop.UID {
			return 0, errors.New("the Goop was deleted")
		}
		if seen.Ended() {
			return int(ptr.Deref(seen.Status.ExitCode, 0)), nil
		}
	}
	// TODO: the watch has ended, and the Goop has not.
	return 0, errors.New("the watch has ended")
}
