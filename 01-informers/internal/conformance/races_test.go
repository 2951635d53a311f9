package conformance

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
)

// startBlocked starts an operator whose requests of one method for Deployments can be blocked.
func (e *operatorEnv) startBlocked(method string) *gate {
	e.t.Helper()
	requests := newGate(func(request *http.Request) bool {
		return request.Method == method && strings.Contains(request.URL.Path, "/deployments/")
	})
	e.startWith(requests.wrap)
	return requests
}

// startDrifted starts an operator and returns a Foo that is Ready, and a gate that blocks the apply for another number of
// replicas.
func (e *operatorEnv) startDrifted() (*v1alpha1.Foo, *gate) {
	e.t.Helper()
	applies := e.startBlocked(http.MethodPatch)
	f := e.createReady("web", "web-server")
	applies.close()
	e.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(3)) })
	e.Eventually(applies.reached).WithTimeout(e.Soon).Should(Receive())
	return f, applies
}

// expectUnchanged waits until the Foo reports a NameConflict, and asserts that no field of the Deployment has changed.
func (e *operatorEnv) expectUnchanged(deployment *appsv1.Deployment, f *v1alpha1.Foo) {
	e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	e.Expect(e.deployment(deployment.Name).ResourceVersion).To(Equal(deployment.ResourceVersion))
}

// Another client creates the Deployment after the operator has found none, and before its apply arrives. Server-side apply
// reports no conflict if the fields of the other Deployment have the values that ours would have.
func TestDeploymentNotOwnedIsNotAdoptedInARace(t *testing.T) {
	t.Parallel()
	for name, equal := range map[string]bool{"another": false, "an equal one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(e *operatorEnv) {
				applies := e.startBlocked(http.MethodPatch)
				applies.close()
				f := e.create("web", "web-server")
				e.Eventually(applies.reached).WithTimeout(e.Soon).Should(Receive())
				if equal {
					desired := foo.Deployment(f, inprocess.Image)
					desired.OwnerReferences = nil
					e.Expect(e.Client.Apply(e.ctx, desired, client.FieldOwner("another"))).To(Succeed())
				} else {
					e.createNotOwned("web-server", nil)
				}
				other := e.deployment("web-server")
				applies.open()
				e.expectUnchanged(other, f)
				if !equal {
					e.expectEvents(f, nameConflict)
				}
			})
		})
	}
}

// The operator's apply is for a Deployment that was deleted, and another client has created one of the name.
func TestForcedApplyDoesNotChangeAnotherDeployment(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		f, applies := e.startDrifted()
		e.delete(e.deployment("web-server"))
		other := e.createNotOwned("web-server", nil)
		applies.open()
		e.expectUnchanged(other, f)
		e.expectEvents(f, available, nameConflict)
	})
}

// release removes the owner of a Deployment, as `kubectl delete --cascade=orphan` of the Foo does.
func (e *operatorEnv) release(deployment *appsv1.Deployment, labels map[string]string) {
	update(e.scenarioRun, deployment, func(d *appsv1.Deployment) { d.OwnerReferences, d.Labels = nil, labels })
}

// The operator's apply is for a Deployment that the Foo no longer owns. With the owner reference written again, the garbage
// collector would delete it with the Foo.
func TestForcedApplyDoesNotAdoptAReleasedDeployment(t *testing.T) {
	t.Parallel()
	for name, keepsLabels := range map[string]bool{"without the owner": true, "without owner and labels": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(e *operatorEnv) {
				f, applies := e.startDrifted()
				released := e.deployment("web-server")
				labels := map[string]string{"app": "other"}
				if keepsLabels {
					labels = released.Labels
				}
				e.release(released, labels)
				applies.open()
				e.expectUnchanged(released, f)
			})
		})
	}
}

// startRenamed starts an operator and returns a Foo with another deploymentName, its old Deployment, and a gate that blocks
// the deletion of that.
func (e *operatorEnv) startRenamed() (*v1alpha1.Foo, *appsv1.Deployment, *gate) {
	e.t.Helper()
	deletions := e.startBlocked(http.MethodDelete)
	f := e.createReady("web", "old")
	old := e.deployment("old")
	deletions.close()
	e.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "new" })
	e.Eventually(deletions.reached).WithTimeout(e.Soon).Should(Receive())
	return f, old, deletions
}

// The operator's deletion is of a Deployment that the Foo no longer owns, or of one that has gone, and there is another one of
// its name.
func TestOldDeploymentThatIsNoLongerOwnedIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, isReplaced := range map[string]bool{"released": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(e *operatorEnv) {
				f, old, deletions := e.startRenamed()
				if isReplaced {
					e.delete(old)
					old = e.createNotOwned("old", nil)
				} else {
					e.release(old, old.Labels)
				}
				deletions.open()
				e.expectAvailable(f, 1)
				e.Expect(e.deployment("old").ResourceVersion).To(Equal(old.ResourceVersion))
			})
		})
	}
}

// The deploymentName is changed back before the deletion of the old Deployment arrives. If another writer has changed that since
// it was read, it is not deleted; if not, it is created again.
func TestNameThatIsChangedBackBeforeTheDeletionArrives(t *testing.T) {
	t.Parallel()
	for name, isChanged := range map[string]bool{"changed since": true, "unchanged": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(e *operatorEnv) {
				f, old, deletions := e.startRenamed()
				e.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "old" })
				if isChanged {
					update(e.scenarioRun, e.deployment("old"), func(d *appsv1.Deployment) { d.Annotations = map[string]string{"since": "then"} })
				}
				deletions.open()
				e.expectAvailable(f, 1)
				e.Eventually(func(g Gomega) {
					var all appsv1.DeploymentList
					g.Expect(e.Client.List(e.ctx, &all, client.InNamespace(e.Namespace))).To(Succeed())
					g.Expect(all.Items).To(ConsistOf(HaveField("Name", "old")))
				}).WithTimeout(e.Soon).Should(Succeed())
				kept := e.deployment("old").UID == old.UID
				e.Expect(kept).To(Equal(isChanged))
			})
		})
	}
}

// The operator's apply is for a Deployment that was deleted.
func TestDeploymentDeletedBeforeTheApplyIsCreatedAgain(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		f, applies := e.startDrifted()
		e.delete(e.deployment("web-server"))
		applies.open()
		e.expectAvailable(f, 3)
		e.expectEvents(f, available, available)
	})
}
