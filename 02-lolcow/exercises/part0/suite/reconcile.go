package suite

import (
	"errors"
	"maps"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconcile calls Reconcile once.
func (e *env) reconcile(name string) (ctrl.Result, error) {
	e.Event("Reconcile %s", name)
	return e.operator.Reconcile(e.Context(), ctrl.Request{NamespacedName: e.key(name)})
}

// mostReconciliations is how many calls of Reconcile may come until nothing is left to do.
const mostReconciliations = 10

// settle calls Reconcile until two calls in a row write nothing and return no error.
func (e *env) settle(name string) {
	var writes []request
	var err error
	idle := 0
	for range mostReconciliations {
		before := e.wire.count()
		_, err = e.reconcile(name)
		writes = e.wire.writes(before)
		if err != nil || len(writes) > 0 {
			idle = 0
			continue
		}
		if idle++; idle == 2 {
			return
		}
	}
	if err != nil {
		e.Fatalf("after %d calls Reconcile still returns the error: %s", mostReconciliations, e.neutral(err.Error()))
	}
	if len(writes) == 0 {
		writes = e.wire.writes(0)
	}
	if len(writes) == 0 {
		e.Fatalf("after %d calls Reconcile still returns an error now and then", mostReconciliations)
	}
	e.Fatalf("after %d calls Reconcile still writes: %s", mostReconciliations, writes[0])
}

// reconcileUntil calls Reconcile for the Lolcow cow until missing returns nothing, and nothing is left to do.
func (e *env) reconcileUntil(missing func() string) {
	e.Eventually(patience, func() string {
		_, _ = e.reconcile("cow")
		return missing()
	})
	e.settle("cow")
}

// neutral is a text without what differs from run to run.
func (e *env) neutral(text string) string {
	return strings.ReplaceAll(text, e.namespace, "NAMESPACE")
}

// quiet calls Reconcile for the Lolcow cow once more and asserts that nothing is written.
func (e *env) quiet() {
	before, versions := e.wire.count(), e.versions()
	_, err := e.reconcile("cow")
	e.must(err, "Reconcile returns an error")
	if writes := e.wire.writes(before); len(writes) > 0 {
		e.Errorf("nothing has changed, and Reconcile writes: %s", writes[0])
		return
	}
	// An apply may change something each time, too.
	after := e.versions()
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if versions[object] != after[object] {
			e.Errorf("nothing has changed, and Reconcile changes the %s", object)
		}
	}
}

// versions are the resourceVersions of the Lolcow cow and of all dependents in the namespace.
func (e *env) versions() map[string]string {
	versions := map[string]string{"Lolcow cow": e.lolcow("cow").GetResourceVersion()}
	for _, one := range e.deployments() {
		versions["Deployment "+one.Name] = one.ResourceVersion
	}
	for _, one := range e.services() {
		versions["Service "+one.Name] = one.ResourceVersion
	}
	return versions
}

// comesAgain reports whether the queue calls Reconcile again after this result, without an event.
func comesAgain(result ctrl.Result, err error) bool {
	if err != nil {
		return !terminal(err)
	}
	return result.RequeueAfter > 0 || result.Requeue //nolint:staticcheck // deprecated, and still what some operators return
}

// pause says when the queue calls Reconcile again where comesAgain is true, without an error.
func pause(result ctrl.Result) string {
	if result.RequeueAfter == 0 {
		return "by Requeue, after the queue's own pause"
	}
	return "after " + result.RequeueAfter.String()
}

func terminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// returned is what Reconcile has returned where comesAgain is false.
func returned(err error) string {
	if terminal(err) {
		return "returns a TerminalError, which the queue drops"
	}
	return "returns neither an error nor RequeueAfter"
}
