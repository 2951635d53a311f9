// Package raw is the Foo controller on client-go alone: a queue of keys that informers fill, workers that
// take one key at a time and make a pass over it, and around them what a controller needs to run in a
// cluster: leader election, health, metrics, and an orderly end. It does what the classic sample controller
// does, and what that leaves out.
//
// Read foo_controller.go first, which is what a pass does, then controller.go, which is when.
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

// What the operator may do is the same for both implementations, and written here for both.
//
// Reads come from the caches, which list and watch, so there is no get. Server-side apply is patch, and
// create where the object is not there yet. The finalizers are for blockOwnerDeletion in an owner reference,
// which the admission plugin OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.example.com,resources=foos/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// reconcile makes one pass over one Foo: it does the same whatever woke it, and it may be called at any time
// and any number of times, for one key by one worker at a time. It returns when to come back, 0 for when an
// event says so, or an error, after which the queue tries again.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) (again time.Duration, err error) {
	// 1. Load. Deleted or on its way: the garbage collector removes what it owns. Whether the caches have seen
	// what the last pass wrote is asked first: while this reads, they may catch up.
	caughtUp := c.written.seen(key)
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
	// What a cache holds, all its readers share.
	f := cached.DeepCopy()

	// 2. Let the pass be if they have not: with an older state it would write the same again.
	if !caughtUp {
		return staleRetry, nil
	}

	// 3. Act, if a try is due. What fails is reported too, unless what was read is stale: then the queue tries
	// again.
	seen, again, err := c.act(ctx, f)
	switch {
	case foo.NamespaceIsTerminating(err):
		return 0, nil
	case errors.Is(err, foo.ErrStale):
		return 0, err
	case err != nil:
		seen.Refused = foo.Transient(err)
	}

	// 4. Report, and requeue for what no event will announce: the next try.
	return again, errors.Join(err, c.report(ctx, f, seen))
}

// act makes one try to bring the Deployment in line, if one is due, and returns what the pass saw and when
// the next try is due.
func (c *controller) act(ctx context.Context, f *v1alpha1.Foo) (foo.Facts, time.Duration, error) {
	live, err := c.findDeployment(f)
	if err != nil {
		return foo.Facts{}, 0, err
	}
	foreign := live != nil && !metav1.IsControlledBy(live, f)
	if foreign {
		live = nil
	}

	switch verdict := c.attempts.Of(f); {
	// Given up: what was reported still holds, whatever the world is like by now.
	case verdict.GaveUp:
		return foo.Facts{Deployment: live, Refused: verdict.Refused, GaveUp: true}, 0, nil
	// Somebody else's. Its next event wakes the Foo.
	case foreign:
		return foo.Facts{Refused: foo.NameConflict(f.Spec.DeploymentName)}, 0, nil
	// Refused, and the next try is not due: something else woke the Foo.
	case !verdict.MayTry():
		return foo.Facts{Deployment: live, Refused: verdict.Refused}, verdict.Wait, nil
	}

	deployment, err := c.bringInLine(ctx, f, live)
	refused := foo.AsRefusal(err)
	switch {
	case foo.IsNameConflict(refused):
		return foo.Facts{Refused: refused}, 0, nil
	case refused != nil:
		verdict := c.attempts.Refuse(f, refused)
		return foo.Facts{Deployment: deployment, Refused: refused, GaveUp: verdict.GaveUp}, verdict.Wait, nil
	case err != nil:
		return foo.Facts{Deployment: deployment}, 0, err
	}
	c.attempts.Forget(keyOf(f).AsNamespacedName())
	return foo.Facts{Deployment: deployment}, 0, nil
}

// bringInLine applies the Deployment of the spec and then, so that the Foo is never without one, deletes
// those of earlier specs.
func (c *controller) bringInLine(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	deployment, err := c.apply(ctx, f, live)
	if err != nil {
		return deployment, err
	}
	return deployment, c.deleteOthers(ctx, f)
}
