package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/shared/exercise/kube"
)

// greetingNotFound is the reason of the condition Ready where the ConfigMap of a Lolcow does not exist, or has no greeting.
const greetingNotFound = "GreetingNotFound"

// ConfigMaps of the Lolcows cow and calf.
const (
	cowTexts  = "cow-texts"
	calfTexts = "calf-texts"
)

// watchesByIndex are the behaviours of step 17b. Those that need a manager wait for what the others explain, so they come last.
func (s *suite) watchesByIndex() {
	s.reconciles("spec.greetingConfigMap is stored, with up to 253 characters", (*env).configMapField)
	if s.failed {
		return
	}
	s.reconciles("the greeting of the ConfigMap takes the place of spec.greeting, which counts again when greetingConfigMap is removed", func(e *env) {
		e.writeText(cowTexts, "Moo")
		e.create("cow", fields{"greeting": "Baa", "greetingConfigMap": cowTexts})
		e.settle("cow")
		if !receives(e.template("cow"), cowTexts, "Moo") {
			e.Fatalf("the pod template has neither the greeting of the ConfigMap nor a reference to the ConfigMap")
		}
		e.change("cow", fields{"greetingConfigMap": nil})
		e.settle("cow")
		e.deployment("Baa")
	})
	s.reconciles("another text changes the pod template, so that the pods are replaced", func(e *env) {
		e.writeText(cowTexts, "Moo")
		e.create("cow", fields{"greetingConfigMap": cowTexts})
		e.settle("cow")
		before := e.template("cow")
		e.writeText(cowTexts, "Baa")
		e.settle("cow")
		if equality.Semantic.DeepEqual(e.template("cow"), before) {
			e.Fatalf("the text has changed, and the pod template has not: the pods keep the old one")
		}
		e.quiet()
	})
	s.reconciles("with a ConfigMap, too, Reconcile does not ask to be called again in steady state", func(e *env) {
		e.writeText(cowTexts, "Moo")
		e.create("cow", fields{"greetingConfigMap": cowTexts})
		e.settle("cow")
		result, err := e.reconcile("cow")
		e.must(err, "Reconcile returns an error")
		if comesAgain(result, nil) {
			e.Fatalf("nothing has changed, and Reconcile asks to be called again %s: a changed text has to trigger it", pause(result))
		}
	})
	s.reconciles("without the ConfigMap, or its key, Ready is False with the reason GreetingNotFound, and the Deployment stays", (*env).noGreeting)
	s.reconciles("a ConfigMap that cannot be read is reported as APIError, tried again, and the Deployment stays", (*env).unreadable)
	if s.failed {
		return
	}
	s.watches()
}

// watches are the behaviours that need a manager.
func (s *suite) watches() {
	s.reconciles("a changed text arrives, although nothing has changed in the Lolcow", func(e *env) {
		e.startWithTexts()
		e.expectArrival("cow", cowTexts, "Baa")
	})
	if s.failed {
		return
	}
	s.reconciles("a changed text arrives in each Lolcow that names the ConfigMap", (*env).arrivesInEach)
	s.reconciles("a ConfigMap that is created later, or deleted, triggers a reconciliation", (*env).comesAndGoes)
	s.reconciles("200 ConfigMaps that no Lolcow names trigger no reconciliation", func(e *env) {
		m := e.startWithTexts()
		e.expectUndisturbed(m, "a ConfigMap that no Lolcow names", func(round int) {
			for i := range 200 {
				e.writeText(fmt.Sprintf("other-%d-%d", round, i), "Baa")
			}
		})
	})
	if s.failed {
		return
	}
	s.reconciles("a ConfigMap of the same name in another namespace triggers no reconciliation", func(e *env) {
		m := e.startWithTexts()
		elsewhere := *e
		elsewhere.namespace = kube.Namespace(e.B)
		e.expectUndisturbed(m, "a ConfigMap of another namespace", func(round int) {
			elsewhere.writeText(cowTexts, fmt.Sprintf("Baa, round %d", round))
		})
	})
}

// configMapField creates Lolcows at the bound of the field, and beyond it.
func (e *env) configMapField() {
	longest := strings.Repeat("m", 253)
	e.create("cow", fields{"greetingConfigMap": longest})
	if got, _, _ := unstructured.NestedString(e.lolcow("cow").Object, "spec", "greetingConfigMap"); got != longest {
		e.Fatalf("spec.greetingConfigMap is not stored: the CRD does not have the field")
	}
	err := e.client.Create(e.Context(), e.newLolcow("calf", fields{"greetingConfigMap": longest + "m"}))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.greetingConfigMap") {
		e.Fatalf("a name of 254 characters, which no ConfigMap can have, is not rejected")
	}
}

// writeText creates or changes a ConfigMap, as a user does.
func (e *env) writeText(name, text string) {
	e.Event("kubectl apply: ConfigMap %s greeting=%s", name, text)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace}}
	_, err := controllerutil.CreateOrUpdate(e.Context(), e.client, configMap, func() error {
		configMap.Data = map[string]string{"greeting": text}
		return nil
	})
	e.must(err, "writing the ConfigMap "+name)
}

// removeText deletes a ConfigMap, as a user does.
func (e *env) removeText(name string) {
	e.Event("kubectl delete: ConfigMap %s", name)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace}}
	e.must(e.client.Delete(e.Context(), configMap), "deleting the ConfigMap "+name)
}

// template is the pod template of the Deployment that a Lolcow owns. It is empty if there is none.
func (e *env) template(name string) corev1.PodTemplateSpec {
	lolcow := e.lolcow(name)
	for _, one := range e.deployments() {
		if metav1.IsControlledBy(&one, lolcow) {
			return one.Spec.Template
		}
	}
	return corev1.PodTemplateSpec{}
}

// receives reports whether pods get a text: from their template, or from the ConfigMap when they start.
func receives(template corev1.PodTemplateSpec, configMap, text string) bool {
	return says(template, text) || strings.Contains(compact(template.Spec), compact(configMap))
}

// noGreeting lacks the ConfigMap first, then its key, and then the ConfigMap again.
func (e *env) noGreeting() {
	e.create("cow", fields{"greetingConfigMap": cowTexts})
	e.attempt()
	if ready := e.expectReady(metav1.ConditionFalse, greetingNotFound); !strings.Contains(ready.Message, cowTexts) {
		e.Errorf("the message of the condition does not name the ConfigMap, %s", cowTexts)
	}
	e.writeText(cowTexts, "Moo")
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, rollingOut)
	before := e.template("cow")

	e.Event("kubectl patch: ConfigMap %s has the key moo in place of greeting", cowTexts)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cowTexts, Namespace: e.namespace}, Data: map[string]string{"moo": "Moo"}}
	e.must(e.client.Update(e.Context(), configMap), "changing the ConfigMap")
	e.attempt()
	e.expectReady(metav1.ConditionFalse, greetingNotFound)
	e.removeText(cowTexts)
	e.attempt()
	e.expectReady(metav1.ConditionFalse, greetingNotFound)
	if !equality.Semantic.DeepEqual(e.template("cow"), before) {
		e.Errorf("the greeting is missing, and the pod template has changed: the pods no longer serve the last one")
	}
}

// etcdDown is what an API server says that cannot read or write.
const etcdDown = "etcd is down, says the check"

// internalError is the response of an API server whose etcd is down.
func internalError() *http.Response {
	return respondStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, etcdDown)
}

// unreadable has each request for a ConfigMap fail.
func (e *env) unreadable() {
	e.writeText(cowTexts, "Moo")
	e.create("cow", fields{"greetingConfigMap": cowTexts})
	e.settle("cow")
	before := e.template("cow")
	e.writeText(cowTexts, "Baa")
	e.Event("the API server cannot read ConfigMaps")
	e.wire.replace(func(r request) *http.Response {
		if r.resource != "configmaps" {
			return nil
		}
		return internalError()
	})
	e.attempt()
	if !equality.Semantic.DeepEqual(e.template("cow"), before) {
		e.Fatalf("the ConfigMap cannot be read, and the pod template has changed: what could not be read is not empty")
	}
	e.expectFailure(apiError, etcdDown)
	e.Event("the API server can read ConfigMaps")
	e.wire.replace(nil)
	e.settle("cow")
	if equality.Semantic.DeepEqual(e.template("cow"), before) {
		e.Errorf("the ConfigMap can be read again, and its text does not arrive")
	}
}

// startWithTexts starts the operator as on a cluster, with two Lolcows whose texts are in ConfigMaps.
func (e *env) startWithTexts() running {
	e.impersonate(e.rules())
	m := e.start()
	for name, texts := range map[string]string{"cow": cowTexts, "calf": calfTexts} {
		e.writeText(texts, "Moo")
		e.create(name, fields{"greetingConfigMap": texts})
		e.awaitReport(name)
	}
	e.awaitRest(m, "cow")
	return m
}

// expectArrival changes the text of a Lolcow, and waits until its pods would be replaced by some that get the text.
func (e *env) expectArrival(name, configMap, text string) {
	before := e.template(name)
	e.writeText(configMap, text)
	e.await("the changed text in the pod template of the Lolcow "+name, func() bool { return e.arrived(name, configMap, text, before) })
}

// arrived reports whether the pod template of a Lolcow has changed, and its pods get the text.
func (e *env) arrived(name, configMap, text string, before corev1.PodTemplateSpec) bool {
	now := e.template(name)
	return !equality.Semantic.DeepEqual(now, before) && receives(now, configMap, text)
}

// arrivesInEach has three Lolcows name one ConfigMap. A change calls the map function twice, with the ConfigMap before and after, and
// a list from the cache has no order: with two Lolcows, a function that returns one of them may name both.
func (e *env) arrivesInEach() {
	m := e.startWithTexts()
	names, before := []string{"cow", "bull", "heifer"}, map[string]corev1.PodTemplateSpec{}
	for _, name := range names {
		if name != "cow" {
			e.create(name, fields{"greetingConfigMap": cowTexts})
			e.awaitReport(name)
			e.awaitRest(m, name)
		}
		before[name] = e.template(name)
	}
	e.writeText(cowTexts, "Baa")
	e.await("the changed text in the pod templates of all three Lolcows", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !e.arrived(name, cowTexts, "Baa", before[name]) })
	})
}

// awaitRest waits until a new Lolcow is reconciled and this one is not. Its last reconciliation, triggered by its own Deployment, may
// come after its report, and would find the next text. One that never rests fails other behaviours.
func (e *env) awaitRest(m running, name string) {
	for round := range 10 {
		before := m.reads.of(e.key(name))
		other := fmt.Sprintf("%s-%d", name, round)
		e.create(other, fields{"greeting": "Moo"})
		e.awaitReport(other)
		if m.reads.of(e.key(name)) == before {
			return
		}
	}
}

// comesAndGoes has the ConfigMap created when the Lolcow waits for it.
func (e *env) comesAndGoes() {
	e.impersonate(e.rules())
	e.start()
	ready := func(reason string) func() bool {
		return func() bool { return e.condition("cow", "Ready").Reason == reason }
	}
	e.create("cow", fields{"greetingConfigMap": cowTexts})
	e.await("Ready is False with the reason "+greetingNotFound, ready(greetingNotFound))
	e.writeText(cowTexts, "Moo")
	e.await("the ConfigMap is there, and Ready has the reason "+rollingOut, ready(rollingOut))
	e.removeText(cowTexts)
	e.await("the ConfigMap is deleted, and Ready has the reason "+greetingNotFound, ready(greetingNotFound))
}

// expectUndisturbed does something that is none of the business of the Lolcow cow, and asserts that it does not trigger a
// reconciliation of it. The text of calf comes after it, in the same watch and in the same queue: when that has arrived, all
// that came before has been handled. The first rounds may meet what the operator's own writes for cow have triggered.
func (e *env) expectUndisturbed(m running, what string, do func(round int)) {
	for round := range 3 {
		before := m.reads.of(e.key("cow"))
		do(round)
		e.expectArrival("calf", calfTexts, fmt.Sprintf("Moo, round %d", round))
		if m.reads.of(e.key("cow")) == before {
			return
		}
	}
	e.Fatalf("%s triggers a reconciliation of the Lolcow cow, which has nothing to do with it", what)
}
