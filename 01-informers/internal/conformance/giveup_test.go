package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/operator"
)

// forbidden has the API server reject every apply of a Deployment.
func forbidden(n int64) error {
	return apierrors.NewForbidden(appsv1.Resource("deployments"), "web-server", fmt.Errorf("entry %d", n))
}

// scale changes the Deployment's number of replicas, as another writer does.
func (e *operatorEnv) scale(replicas int32) {
	update(e.scenarioRun, e.deployment("web-server"), func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	e.rollOut("web-server")
}

// fewRetries has an operator soon stop trying.
func fewRetries(options *operator.Options) { options.MaxRetries = 3 }

// A Stalled Foo is still observed: another writer changes the Deployment, the API server rejects what the operator applies,
// and then the writer changes it back.
func TestStalledFooWhoseDeploymentHasDesiredValuesIsReady(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		o := &outage{err: forbidden}
		running := e.startWith(o.wrap, fewRetries)
		f := e.createReady("web", "web-server")

		o.lasts.Store(true)
		e.scale(4)
		e.expectStalled(f)
		tries := o.failed.Load()
		e.scale(1)
		e.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		e.Expect(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
		e.Expect(f.Status.AvailableReplicas).To(BeEquivalentTo(1))
		e.Consistently(o.failed.Load).WithTimeout(time.Second).Should(Equal(tries), "there is no other try")

		e.scale(4)
		e.expectStalled(f)
		e.Expect(o.failed.Load()).To(Equal(tries), "there is no other try for this spec")
		running.Stop(e.t)
		e.startWith(o.wrap, fewRetries)
		e.scale(1)
		e.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
	})
}

// The status of a Foo that is Ready again does not show that its retries were exhausted. So there is another try when its
// Deployment is deleted.
func TestDeploymentOfAFooThatIsReadyAgainIsCreatedAgain(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		o := &outage{err: forbidden}
		e.startWith(o.wrap, fewRetries)
		f := e.createReady("web", "web-server")

		o.lasts.Store(true)
		e.scale(4)
		e.expectStalled(f)
		o.lasts.Store(false)
		e.scale(1)
		e.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		e.delete(e.deployment("web-server"))
		e.expectAvailable(f, 1)
	})
}

// For some time the operator lacks the permission, as in an upgrade that replaces its role. That exhausts no retries.
func TestFooIsNotStalledForAPermission(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		o := &outage{err: func(int64) error {
			return apierrors.NewForbidden(appsv1.Resource("deployments"), "web-server",
				errors.New(`User "operator" cannot patch resource "deployments" in API group "apps" in the namespace "default"`))
		}}
		e.startWith(o.wrap, fewRetries)
		f := e.createReady("web", "web-server")
		o.lasts.Store(true)
		e.scale(4)
		ready := e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
		e.Expect(ready.Message).To(ContainSubstring("cannot patch"))
		e.Eventually(o.failed.Load).WithTimeout(e.Soon).Should(BeNumerically(">", 6), "more than there are retries")
		o.lasts.Store(false)
		e.expectAvailable(f, 1)
		e.Expect(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
	})
}
