//go:build start

package faults

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
)

// story is what happens to one Lolcow. It is the transport of the operator.
type story struct {
	*testing.T
	client client.Client // the test's own
	lolcow *v1alpha1.Lolcow
	next   http.RoundTripper

	// crash is the number of the request at which the operator crashes, and after says that the request has its effect.
	crash int
	after bool

	requests int
	created  bool
}

var errCrash = errors.New("the operator has crashed")

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{T: t, client: lab.Client(t), lolcow: &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: lab.Namespace(t)}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}}
}

// RoundTrip sends a request of the operator.
func (s *story) RoundTrip(request *http.Request) (*http.Response, error) {
	s.requests++
	crashes := s.requests == s.crash
	if crashes && !s.after {
		return nil, errCrash
	}
	response, err := s.next.RoundTrip(request)
	if request.Method != http.MethodGet {
		s.look()
	}
	if crashes && err == nil {
		_ = response.Body.Close()
		err = errCrash
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// look asserts that there is one ConfigMap, since there was one for the first time.
func (s *story) look() {
	s.Helper()
	count := len(s.owned())
	s.created = s.created || count > 0
	if s.created && count != 1 {
		s.Errorf("after request %d there are %d ConfigMaps", s.requests, count)
	}
}

// operator starts a process of the operator.
func (s *story) operator() reconcile.Reconciler {
	s.Helper()
	config := lab.Config(s)
	config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s
	}))
	c, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		s.Fatalf("making a client: %v", err)
	}
	return subject.NewKeeper(c)
}

// owned lists the ConfigMaps of the Lolcow.
func (s *story) owned() []corev1.ConfigMap {
	s.Helper()
	var list corev1.ConfigMapList
	if err := s.client.List(s.Context(), &list, client.InNamespace(s.lolcow.Namespace)); err != nil {
		s.Fatalf("listing ConfigMaps: %v", err)
	}
	var owned []corev1.ConfigMap
	for _, one := range list.Items {
		if metav1.IsControlledBy(&one, s.lolcow) {
			owned = append(owned, one)
		}
	}
	return owned
}

// settle calls Reconcile until it returns no error.
func (s *story) settle(operator reconcile.Reconciler) reconcile.Reconciler {
	s.Helper()
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.lolcow)}
	for range 10 {
		if _, err := operator.Reconcile(s.Context(), request); err == nil {
			return operator
		}
		operator = s.operator()
	}
	s.Fatal("the operator does not settle")
	return nil
}

// tell creates the Lolcow and changes it.
func (s *story) tell() {
	s.Helper()
	if err := s.client.Create(s.Context(), s.lolcow); err != nil {
		s.Fatalf("creating the Lolcow: %v", err)
	}
	operator := s.settle(s.operator())
	var changed v1alpha1.Lolcow
	if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(s.lolcow), &changed); err != nil {
		s.Fatalf("reading the Lolcow: %v", err)
	}
	changed.Spec.Greeting = "Baa"
	if err := s.client.Update(s.Context(), &changed); err != nil {
		s.Fatalf("changing the Lolcow: %v", err)
	}
	s.settle(operator)
	if owned := s.owned(); len(owned) != 1 || owned[0].Data["greeting"] != "Baa" {
		s.Errorf("at the end there are %d ConfigMaps: %v", len(owned), owned)
	}
}

func TestStory(t *testing.T) {
	undisturbed := newStory(t)
	undisturbed.tell()
	for request := 1; request <= undisturbed.requests; request++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d after=%t", request, after), func(t *testing.T) {
				s := newStory(t)
				s.crash, s.after = request, after
				s.tell()
			})
		}
	}
}
