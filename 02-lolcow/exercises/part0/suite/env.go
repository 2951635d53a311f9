package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var lolcowKind = schema.GroupVersionKind{Group: "my.domain", Version: "v1alpha1", Kind: "Lolcow"}

// fields are those of a spec, as they are in YAML: the Go types are the reader's.
type fields map[string]any

// env is a namespace, and the project's reconciler in it.
type env struct {
	*check.B
	suite *suite
	// client is the check's own. The requests of the reconciler go through wire.
	client    client.Client
	wire      *wire
	recorder  *recorder
	dns       *dns
	clock     *steppedClock
	namespace string
	operator  Operator
	// user is who the manager acts as: an administrator if it is empty.
	user string
}

func (s *suite) newEnv(b *check.B) *env {
	e := &env{
		B: b, suite: s, client: s.newClient(b, kube.Config(b)), wire: &wire{b: b}, recorder: &recorder{b: b}, clock: &steppedClock{},
		namespace: kube.Namespace(b),
	}
	b.Cleanup(e.clear)
	e.dns = newDNS(b, e.wire)
	e.restart()
	return e
}

// clear deletes what the namespace has: the manager of another behaviour would work on its Lolcows, and a node port is the
// cluster's. The context of the behaviour has ended by then.
func (e *env) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	lolcows := &unstructured.UnstructuredList{}
	lolcows.SetGroupVersionKind(lolcowKind)
	err := e.client.List(ctx, lolcows, client.InNamespace(e.namespace))
	for i := range lolcows.Items {
		// No operator is there any more to remove its finalizer.
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		err = errors.Join(err, client.IgnoreNotFound(e.client.Patch(ctx, &lolcows.Items[i], patch)),
			client.IgnoreNotFound(e.client.Delete(ctx, &lolcows.Items[i])))
	}
	// There may be hundreds of these.
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}} {
		err = errors.Join(err, e.client.DeleteAllOf(ctx, kind, client.InNamespace(e.namespace)))
	}
	// A Service is deleted by its name only.
	var services corev1.ServiceList
	err = errors.Join(err, e.client.List(ctx, &services, client.InNamespace(e.namespace)))
	for i := range services.Items {
		err = errors.Join(err, client.IgnoreNotFound(e.client.Delete(ctx, &services.Items[i])))
	}
	if err != nil {
		e.Errorf("deleting what the behaviour has left: %v", err)
	}
}

func (s *suite) newClient(b *check.B, config *rest.Config) client.Client {
	c, err := client.New(config, client.Options{Scheme: s.scheme})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	return c
}

// restart makes a new reconciler: what the last one remembered is lost, as after a restart of the operator.
func (e *env) restart() {
	config := kube.ReaderConfig(e.B)
	config.Wrap(e.wire.transport)
	e.wire.interrupt(0, none)
	e.operator = e.equipped(e.suite.project.New(e.suite.newClient(e.B, config), e.suite.scheme, e.recorder))
}

// equipped sets the fields of a reconciler that step 17c asks for, if it has them. One that has the name and another type would
// stay empty, and the reconciler would panic somewhere.
func (e *env) equipped(operator Operator) Operator {
	setField(operator, "DNS", e.dns.url)
	setField(operator, "Now", e.clock.now)
	for _, asked := range []struct {
		step, field string
		value       any
	}{{"16b", "Recorder", e.recorder}, {"17c", "DNS", e.dns.url}, {"17c", "Now", e.clock.now}} {
		if slices.Index(Steps, e.suite.last) < slices.Index(Steps, asked.step) {
			continue
		}
		if is := otherType(operator, asked.field, asked.value); is != nil {
			e.Fatalf("the field %s of LolcowReconciler has the type %s, and not the one that step %s asks for", asked.field, is, asked.step)
		}
	}
	return operator
}

// must ends the behaviour if the check itself cannot do something.
func (e *env) must(err error, doing string) {
	if err != nil {
		e.Fatalf("%s: %v", doing, err)
	}
}

// newLolcow is a Lolcow that is not on the API server yet.
func (e *env) newLolcow(name string, spec fields) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any(spec)}}
	object.SetGroupVersionKind(lolcowKind)
	object.SetName(name)
	object.SetNamespace(e.namespace)
	return object
}

// create creates a Lolcow.
func (e *env) create(name string, spec fields) {
	e.Event("kubectl create: Lolcow %s %s", name, compact(spec))
	e.must(e.client.Create(e.Context(), e.newLolcow(name, spec)), "creating the Lolcow "+name)
}

// lolcow reads a Lolcow.
func (e *env) lolcow(name string) *unstructured.Unstructured {
	object := e.newLolcow(name, nil)
	e.must(e.client.Get(e.Context(), e.key(name), object), "reading the Lolcow "+name)
	return object
}

// change changes fields of a spec; nil removes one.
func (e *env) change(name string, spec fields) {
	e.Event("kubectl patch: Lolcow %s %s", name, compact(spec))
	patch, err := json.Marshal(map[string]any{"spec": spec})
	e.must(err, "writing a patch")
	e.must(e.client.Patch(e.Context(), e.lolcow(name), client.RawPatch("application/merge-patch+json", patch)), "changing the Lolcow "+name)
}

func (e *env) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: e.namespace, Name: name}
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (e *env) deployments() []deployment {
	var list appsv1.DeploymentList
	e.must(e.client.List(e.Context(), &list, client.InNamespace(e.namespace)), "listing Deployments")
	return list.Items
}

// deployment returns the one Deployment whose pods say a greeting: as an argument, a command, a variable.
func (e *env) deployment(greeting string) *appsv1.Deployment {
	var found []deployment
	all := e.deployments()
	for _, one := range all {
		if says(one.Spec.Template, greeting) {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		e.Fatalf("of %d Deployments in the namespace, %d have %q in a container of the pod template; expected 1", len(all), len(found), greeting)
	}
	return &found[0]
}

func says(template corev1.PodTemplateSpec, greeting string) bool {
	quoted, _ := json.Marshal(greeting)
	containers, _ := json.Marshal(template.Spec.Containers)
	return strings.Contains(string(containers), strings.Trim(string(quoted), `"`))
}

func (e *env) services() []corev1.Service {
	var list corev1.ServiceList
	e.must(e.client.List(e.Context(), &list, client.InNamespace(e.namespace)), "listing Services")
	return list.Items
}

// service returns the one Service of the namespace.
func (e *env) service() *corev1.Service {
	all := e.services()
	if len(all) != 1 {
		e.Fatalf("the namespace has %d Services; expected 1", len(all))
	}
	return &all[0]
}

// condition returns a condition of a Lolcow, or an empty one.
func (e *env) condition(name, conditionType string) metav1.Condition {
	list, _, err := unstructured.NestedSlice(e.lolcow(name).Object, "status", "conditions")
	e.must(err, "reading status.conditions")
	for _, one := range list {
		var condition metav1.Condition
		e.must(runtime.DefaultUnstructuredConverter.FromUnstructured(one.(map[string]any), &condition), "reading a condition")
		if condition.Type == conditionType {
			return condition
		}
	}
	return metav1.Condition{}
}

// expectReady asserts status and reason of the condition Ready of the Lolcow cow.
func (e *env) expectReady(status metav1.ConditionStatus, reason string) metav1.Condition {
	e.Helper()
	ready := e.condition("cow", "Ready")
	if ready.Status != status || ready.Reason != reason {
		e.Fatalf("the condition Ready is %s; expected %s", describe(ready), fmt.Sprintf("%s with the reason %s", status, reason))
	}
	if generation := e.lolcow("cow").GetGeneration(); ready.ObservedGeneration != generation {
		e.Fatalf("the observedGeneration of the condition Ready is %d; the generation of the Lolcow is %d", ready.ObservedGeneration, generation)
	}
	return ready
}

func describe(condition metav1.Condition) string {
	if condition.Type == "" {
		return "missing"
	}
	return fmt.Sprintf("%s with the reason %s", condition.Status, text(condition.Reason))
}

// patience is how long something may take that a correct operator does in milliseconds.
const patience = 20 * time.Second
