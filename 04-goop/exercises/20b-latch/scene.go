package latch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace with a Goop, its controller, and a clock.
type scene struct {
	b              *check.B
	entry          Entry
	wire           *kube.Wire
	process        *kube.Process
	client, reader client.Client
	key            client.ObjectKey

	now time.Time
	// ended is when the controller was called that saw the end first.
	ended time.Time
	// created are the workers that there were, and others the ConfigMaps of the user, by name.
	created map[types.UID]bool
	others  map[string]*corev1.ConfigMap
	result  reconcile.Result
}

func newScene(b *check.B, entry Entry, ttl *int32) *scene {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	s := &scene{
		b: b, entry: entry, wire: kube.NewWire(b), process: kube.NewProcess(b), created: map[types.UID]bool{},
		others: map[string]*corev1.ConfigMap{},
		key:    client.ObjectKey{Namespace: kube.Namespace(b), Name: "moo"}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	s.wire.Before(s.process.Before)
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	s.must("making a client", err)
	s.reader, err = client.New(s.wire.Config(), client.Options{Scheme: scheme})
	s.must("making a client", err)
	b.Event("a user creates the Goop")
	s.must("creating a Goop", s.client.Create(b.Context(), &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name},
		Spec:       v1alpha1.GoopSpec{Cmd: []string{"true"}, JobCount: new(int32(workers)), TTLSecondsAfterFinished: ttl},
	}))
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// call starts the controller, and calls Reconcile once.
func (s *scene) call() error {
	s.b.Event("Reconcile at %s", s.now.Format(time.TimeOnly))
	err := s.process.Run(func(ctx context.Context) (err error) {
		s.result, err = s.entry(ctx, s.reader, s.now, s.key)
		return err
	})
	if err != nil {
		s.b.Event("  it returned the error: %v", err)
	}
	for _, worker := range s.workers() {
		s.created[worker.UID] = true
	}
	return err
}

// expectError calls Reconcile some times: the last one has to return an error.
func (s *scene) expectError(calls int, why string) {
	var err error
	for range calls {
		err = s.call()
	}
	if err == nil {
		s.b.Fatalf("%s, and Reconcile returned no error", why)
	}
}

// settle calls Reconcile as long as something but the time triggers it.
func (s *scene) settle() {
	var last any
	for range most {
		seen := len(s.wire.Requests())
		err := s.call()
		sent := s.wire.Requests()[seen:]
		at := slices.IndexFunc(sent, kube.Writes)
		switch {
		case err != nil:
			last = err
		case at >= 0:
			last = sent[at]
		default:
			return
		}
	}
	s.b.Fatalf("after %d calls there is still no end; the last one came to this: %v", most, last)
}

// toTheEnd lets all workers come to their end.
func (s *scene) toTheEnd() {
	s.settle()
	s.finish(workers)
	s.settle()
}

// later steps the clock.
func (s *scene) later(d time.Duration) {
	s.b.Event("%s later", d)
	s.now = s.now.Add(d)
}

// followRequeues steps the clock as far as the controller asks for, until it asks for nothing any more.
func (s *scene) followRequeues() {
	for range most {
		if s.result.RequeueAfter == 0 {
			return
		}
		s.later(s.result.RequeueAfter)
		s.settle()
	}
	s.b.Fatalf("after %d calls it still asks for another one, in %s", most, s.result.RequeueAfter)
}

// workers are those that there are.
func (s *scene) workers() []corev1.ConfigMap {
	var list corev1.ConfigMapList
	s.must("listing ConfigMaps", s.client.List(s.b.Context(), &list, client.InNamespace(s.key.Namespace)))
	return slices.DeleteFunc(list.Items, func(one corev1.ConfigMap) bool {
		other := s.others[one.Name]
		return other != nil && other.UID == one.UID
	})
}

// finish lets the first workers come to their end.
func (s *scene) finish(count int) {
	for number := range count {
		s.patch(number, "yes")
	}
	if count == workers {
		s.ended = s.now
	}
}

// undo writes that a worker is not done any more.
func (s *scene) undo(number int) { s.patch(number, "no") }

func (s *scene) patch(number int, done string) {
	s.b.Event("the other controller writes done: %q into %s", done, s.name(number))
	worker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.name(number)}}
	patch := fmt.Appendf(nil, `{"data":{"done":%q}}`, done)
	s.must("writing a worker", s.client.Patch(s.b.Context(), worker, client.RawPatch(types.MergePatchType, patch)))
}

// remove deletes what has the name of a worker, as a user.
func (s *scene) remove(number int) {
	s.b.Event("a user deletes %s", s.name(number))
	worker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.name(number)}}
	s.must("deleting a worker", s.client.Delete(s.b.Context(), worker))
	delete(s.others, s.name(number))
}

// createOther creates a ConfigMap that the Goop does not control, as a user.
func (s *scene) createOther(name string) {
	s.b.Event("a user creates the ConfigMap %s, with done: \"yes\"", name)
	other := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: name}, Data: map[string]string{"done": "yes"},
	}
	s.must("creating a ConfigMap", s.client.Create(s.b.Context(), other))
	s.others[name] = other
}

// replace deletes a worker, and creates another ConfigMap of its name.
func (s *scene) replace(number int) {
	s.remove(number)
	s.createOther(s.name(number))
}

// replaceBeforeDelete lets a user replace a worker just before its deletion, once.
func (s *scene) replaceBeforeDelete() {
	var once sync.Once
	s.wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if kube.Deletes(request) {
			once.Do(func() {
				s.b.Event("  before it reaches the API server:")
				// The first one, if the request is about all of them.
				number, _ := strconv.Atoi(strings.TrimPrefix(request.Name, s.key.Name+"-"))
				s.replace(number)
			})
		}
		return s.process.Before(request, r)
	})
}

func (s *scene) expectOthers() {
	for name, other := range s.others {
		var now corev1.ConfigMap
		err := s.client.Get(s.b.Context(), client.ObjectKeyFromObject(other), &now)
		s.must("reading a ConfigMap", client.IgnoreNotFound(err))
		switch {
		case err != nil || now.UID != other.UID:
			s.b.Fatalf("the ConfigMap %s, which the Goop does not control, was deleted", name)
		case now.ResourceVersion != other.ResourceVersion:
			s.b.Fatalf("the ConfigMap %s, which the Goop does not control, was changed", name)
		}
	}
}

func (s *scene) name(number int) string { return fmt.Sprintf("%s-%d", s.key.Name, number) }

func (s *scene) goop() *v1alpha1.Goop {
	var goop v1alpha1.Goop
	s.must("reading the Goop", s.client.Get(s.b.Context(), s.key, &goop))
	return &goop
}

func (s *scene) isComplete() bool {
	return apimeta.IsStatusConditionTrue(s.goop().Status.Conditions, v1alpha1.ConditionComplete)
}

func (s *scene) expectIncomplete(why string) {
	if s.isComplete() {
		s.b.Fatalf("%s, and Complete is True", why)
	}
}

func (s *scene) expectComplete() {
	at := s.goop().Status.CompletionTime
	switch {
	case !s.isComplete():
		s.b.Fatalf("all workers were done, and Complete is not True")
	case at == nil:
		s.b.Fatalf("Complete is True, and status.completionTime is not set")
	case !at.Time.Equal(s.ended):
		s.b.Fatalf("all workers were done at %s, and status.completionTime is %s", s.ended.Format(time.TimeOnly), at.UTC().Format(time.TimeOnly))
	}
}

// expectNow checks how long ago the end is.
func (s *scene) expectNow(after time.Duration) {
	if passed := s.now.Sub(s.ended); passed != after {
		s.b.Fatalf("the workers were deleted %s after the end, and should have been after %s", passed, after)
	}
}

func (s *scene) expectWorkers(want int) {
	goop, all := s.goop(), s.workers()
	for i := range all {
		if !metav1.IsControlledBy(&all[i], goop) {
			s.b.Fatalf("the worker %s is not controlled by the Goop", all[i].Name)
		}
	}
	if len(all) != want {
		s.b.Fatalf("there are %d workers, and there should be %d", len(all), want)
	}
}

func (s *scene) expectCreated(want int) {
	if len(s.created) > want {
		s.b.Fatalf("%d workers were created, and %d were needed: one whose work was done ran again", len(s.created), want)
	}
}
