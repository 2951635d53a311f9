package ownmetric

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const metric = "lolcow_port_conflict"

// scene is a namespace with Lolcows.
type scene struct {
	*running
	b         *check.B
	client    client.Client
	namespace string
	settled   int
}

func (r *running) scene(b *check.B) *scene {
	s := &scene{running: r, b: b, namespace: kube.Namespace(b)}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	s.must("making a client", err)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) create(name string, finalizers ...string) {
	s.b.Event("a user creates %s", name)
	s.must("creating a Lolcow", s.client.Create(s.b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, Finalizers: finalizers},
		Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
	}))
}

func (s *scene) lolcow(name string) *v1alpha1.Lolcow {
	var lolcow v1alpha1.Lolcow
	s.must("reading a Lolcow", s.client.Get(s.b.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &lolcow))
	return &lolcow
}

// report writes the condition, as the operator does.
func (s *scene) report(name, reason string) {
	s.b.Event("the reason of the condition of %s is %s", name, reason)
	lolcow := s.lolcow(name)
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonServing {
		status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason})
	// What another condition says does not count.
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{
		Type: "Announced", Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPortConflict,
	})
	s.must("writing the status", s.client.Status().Update(s.b.Context(), lolcow))
}

// greet changes the greeting of cow.
func (s *scene) greet(greeting string) {
	s.b.Event("a user changes the greeting of cow to %s", greeting)
	lolcow := s.lolcow("cow")
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = greeting
	s.must("changing a Lolcow", s.client.Patch(s.b.Context(), lolcow, client.MergeFrom(before)))
}

func (s *scene) remove() {
	s.b.Event("a user deletes cow")
	s.must("deleting a Lolcow", s.client.Delete(s.b.Context(), s.lolcow("cow")))
}

// release removes the finalizers, as the controller does that has added them.
func (s *scene) release() {
	s.b.Event("the finalizer of cow is removed")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	s.must("removing a finalizer", s.client.Patch(s.b.Context(), s.lolcow("cow"), patch))
}

// settle waits until what was done before has reached the metrics: events of one kind come in their order, and so does the
// series of a Lolcow that is created last.
func (s *scene) settle() {
	s.settled++
	name := fmt.Sprintf("last-%d", s.settled)
	s.create(name)
	s.expect(name, "0")
}

// expect waits until a Lolcow has one series, or several, with this value.
func (s *scene) expect(name, want string) {
	s.b.Eventually(patience, func() string {
		all := s.series(name)
		if len(all) == 0 {
			return fmt.Sprintf("there is no series of the Lolcow %s", name)
		}
		for _, one := range all {
			if one.value != want {
				return fmt.Sprintf("the value of the Lolcow %s is %s, and should be %s", name, one.value, want)
			}
		}
		return ""
	})
}

// gone waits until cow has no series.
func (s *scene) gone() {
	s.b.Eventually(patience, func() string {
		if all := s.series("cow"); len(all) > 0 {
			return "the Lolcow cow is deleted, and its series is there, with the value " + all[0].value
		}
		return ""
	})
}

// labels asserts that cow has one series, with the two labels.
func (s *scene) labels() {
	all := s.series("cow")
	for _, one := range all {
		keys := slices.Sorted(maps.Keys(one.labels))
		if !slices.Equal(keys, []string{"name", "namespace"}) {
			s.b.Fatalf("the series has the labels %s", strings.Join(keys, ", "))
		}
	}
	if len(all) != 1 {
		s.b.Fatalf("one Lolcow has %d series", len(all))
	}
}

// one series, as it is served.
type series struct {
	labels map[string]string
	value  string
}

var label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// series returns those of a Lolcow.
func (s *scene) series(name string) []series {
	time.Sleep(50 * time.Millisecond)
	status, text, err := s.read()
	if err != nil || status != http.StatusOK {
		s.b.Fatalf("reading the metrics: status %d, %v", status, err)
	}
	var all []series
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, metric+"{")
		end := strings.LastIndex(rest, "} ")
		if !found || end < 0 {
			continue
		}
		one := series{labels: map[string]string{}, value: strings.TrimSpace(rest[end+1:])}
		for _, match := range label.FindAllStringSubmatch(rest[:end], -1) {
			one.labels[match[1]] = match[2]
		}
		if one.labels["namespace"] == s.namespace && one.labels["name"] == name {
			all = append(all, one)
		}
	}
	return all
}
