// Package raw is the Foo controller on client-go alone: informers that fill a work queue with keys, workers that reconcile one
// key at a time, and what else a controller needs in a cluster: leader election, health probes, metrics, and a graceful
// shutdown. It does what the classic sample controller does, and what that leaves out.
//
// Read foo_controller.go first, then controller.go.
package raw

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// Both implementations need the same permissions.
//
// Reads come from the caches, which list and watch, so there is no get. Server-side apply is patch, and create where the
// object is not there yet. The finalizers are for blockOwnerDeletion in an owner reference, which the admission plugin
// OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// reconcile compares the Deployment of one Foo with its spec and corrects what differs. It does the same whatever triggered
// it. It may be called at any time and any number of times, by one worker at a time for one key. After an error, the worker
// adds the key again with a back-off. Otherwise it adds the key again after requeueAfter, unless that is 0.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error) {
	// 1. Fetch. The garbage collector deletes what a deleted Foo owns. The check of the caches comes before the read: in the
	// other order, the caches could catch up between the two, and a stale read would pass the check.
	upToDate := c.written.seen(key)
	cached, err := c.fooLister.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.attempts.Forget(key.AsNamespacedName())
		c.written.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading Foo %s: %w", key, err)
	}
	if !cached.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	if !upToDate {
		return staleRetry, nil
	}
	// All readers of a cache share its objects.
	f := cached.DeepCopy()

	// 2. Act, if the back-off after a rejection has ended. Errors are also reported in the status, except stale ones: a status
	// that is computed from an old cache would be wrong.
	acting, stop := foo.UntilReport(ctx)
	defer stop()
	observed, requeueAfter, err := c.tryDeployment(acting, f)
	switch {
	case errors.Is(err, foo.ErrNamespaceTerminating):
		return 0, nil
	case errors.Is(err, foo.ErrStale):
		return 0, err
	case err != nil:
		observed.Failure = foo.Transient(err)
	}

	// 3. Report, and requeue if no event triggers the next try.
	return requeueAfter, errors.Join(err, c.report(ctx, f, observed))
}

// tryDeployment tries to bring the Deployment in line with the spec, if a try is due. It returns what it observed and when the
// next try is due.
func (c *controller) tryDeployment(ctx context.Context, f *v1alpha1.Foo) (foo.Observation, time.Duration, error) {
	live, err := c.findDeployment(f)
	if err != nil {
		return foo.Observation{}, 0, err
	}
	notOwned := live != nil && !metav1.IsControlledBy(live, f)
	if notOwned {
		live = nil
	}
	if live == nil {
		c.attempts.NoteMissing(f)
	}

	switch retry := c.attempts.Of(f); {
	case retry.Exhausted:
		return c.rejected(f, live, retry)
	// The Deployment's own events trigger the next try.
	case notOwned:
		return foo.Observation{Failure: foo.NameConflict(f.Spec.DeploymentName)}, 0, nil
	case !retry.Due():
		return c.rejected(f, live, retry)
	}

	deployment, err := c.ensureDeployment(ctx, f, live)
	failure := foo.AsRejected(err)
	switch {
	// The cache lacks the Deployment that has the name, so no event may report that the name is free again.
	case foo.IsNameConflict(failure):
		return foo.Observation{Failure: failure}, foo.UncachedRetry, nil
	case failure != nil:
		return c.rejected(f, deployment, c.attempts.NoteRejected(f, failure))
	case err != nil:
		return foo.Observation{Deployment: deployment}, 0, err
	}
	c.attempts.Forget(keyOf(f).AsNamespacedName())
	return foo.Observation{Deployment: deployment}, 0, nil
}

// rejected returns what is reported after a rejected try, and when the next one is due. The rejection is not reported if the
// Deployment is as desired nevertheless, because another writer has changed it back.
func (c *controller) rejected(f *v1alpha1.Foo, live *appsv1.Deployment, retry foo.Retry) (foo.Observation, time.Duration, error) {
	others, err := c.findOthers(f)
	if err != nil {
		return foo.Observation{}, 0, err
	}
	if len(others) == 0 && foo.HasDesiredValues(live, foo.Deployment(f, c.image)) {
		c.attempts.NoteHasDesiredValues(f)
		return foo.Observation{Deployment: live}, retry.Wait, nil
	}
	return foo.Observation{Deployment: live, Failure: retry.Failure, Exhausted: retry.Exhausted}, retry.Wait, nil
}

// ensureDeployment applies the Deployment of the spec. Then it deletes those of earlier specs, so that the Foo always has
// one. A Deployment that is being deleted does not count.
func (c *controller) ensureDeployment(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	deployment, err := c.apply(ctx, f, live)
	if err != nil || !deployment.DeletionTimestamp.IsZero() {
		return deployment, err
	}
	return deployment, c.deleteOthers(ctx, f)
}
