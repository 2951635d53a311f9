package conformance

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
)

// startHeldUp starts an operator whose applies of Deployments can be held up.
func (w *trial) startHeldUp() *gate {
	w.t.Helper()
	applies := newGate(func(request *http.Request) bool {
		return request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/deployments/")
	})
	inprocess.Start(w.t, w.account, inprocess.Settings{
		Implementation: w.implementation, Namespace: w.Namespace,
		Config: func(config *rest.Config) { config.Wrap(applies.wrap) },
	})
	return applies
}

// expectUntouched waits until the Foo says that its name is taken, and asserts that the Deployment is not
// changed in a single field.
func (w *trial) expectUntouched(foreign *appsv1.Deployment, f *v1alpha1.Foo) {
	w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	w.Expect(w.deployment(foreign.Name).ResourceVersion).To(Equal(foreign.ResourceVersion))
}

// A foreign Deployment comes into being after the operator has found the name free, and before its apply
// arrives.
func TestForeignDeploymentIsNotSeizedInARace(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			applies := w.startHeldUp()
			applies.close()
			f := w.create("web", "web-server")
			w.Eventually(applies.reached).WithTimeout(w.Soon).Should(Receive())
			foreign := w.createForeign("web-server", nil)
			applies.open()
			w.expectUntouched(foreign, f)
			w.expectEvents(f, nameConflict)
		})
	}
}

// The operator has found a Deployment of its own that needs a change, and when its apply arrives, the name is
// a stranger's.
func TestForcedApplyDoesNotFallOnAnotherDeployment(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			applies := w.startHeldUp()
			f := w.createReady("web", "web-server")
			ours := w.deployment("web-server")

			applies.close()
			w.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(3)) })
			w.Eventually(applies.reached).WithTimeout(w.Soon).Should(Receive())
			w.delete(ours)
			foreign := w.createForeign("web-server", nil)
			applies.open()
			w.expectUntouched(foreign, f)
			w.expectEvents(f, available, nameConflict)
		})
	}
}

// The Deployment is deleted after the operator has found that it needs a change, and before its apply arrives.
func TestDeploymentDeletedBeforeTheApplyComesBack(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			applies := w.startHeldUp()
			f := w.createReady("web", "web-server")

			applies.close()
			w.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(3)) })
			w.Eventually(applies.reached).WithTimeout(w.Soon).Should(Receive())
			w.delete(w.deployment("web-server"))
			applies.open()
			w.expectAvailable(f, 3)
			w.expectEvents(f, available, available)
		})
	}
}
