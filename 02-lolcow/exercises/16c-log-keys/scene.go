package logkeys

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/operator"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace with a Lolcow whose greeting was Moo, and the reader's controller with its log.
type scene struct {
	*operator.Operator
	b      *check.B
	client client.Client
	key    client.ObjectKey
	log    *operator.Log
	// read is how many lines of the log news has returned.
	read int
}

// newScene returns when the ConfigMap is there.
func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "cow"}}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	s.must("making a client", err)
	s.must("creating a Lolcow", s.client.Create(b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}))
	log, logger := operator.NewLog(b)
	s.log = log
	s.Operator = operator.Start(b, s.key.Namespace, entry, logger)
	s.expectLabel("Moo")
	s.settle()
	return s
}

// settle waits until the cache is up to date, and what has been logged so far is of no interest.
func (s *scene) settle() {
	const rounds = 10
	for range rounds {
		if s.Reconcile(s.request()) == "" {
			break
		}
	}
	s.read = len(s.log.Lines())
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) request() reconcile.Request { return reconcile.Request{NamespacedName: s.key} }

// change changes the greeting, as a user does.
func (s *scene) change(greeting string) {
	s.b.Event("the user changes the greeting to %s", greeting)
	var lolcow v1alpha1.Lolcow
	s.must("reading the Lolcow", s.client.Get(s.b.Context(), s.key, &lolcow))
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = greeting
	s.must("changing the Lolcow", s.client.Patch(s.b.Context(), &lolcow, client.MergeFrom(before)))
}

// reject lets the next n writes of a ConfigMap be rejected.
func (s *scene) reject(n int32, with *apierrors.StatusError) {
	var rejected atomic.Int32
	s.Wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if !kube.Writes(request) || request.Resource != "configmaps" || rejected.Add(1) > n {
			return nil, nil
		}
		s.b.Event("  it is rejected: %v", with)
		return kube.Failure(r, with), nil
	})
}

// exceeded is what a quota says that another user then raises, and changed what it says of an object that another client has
// written meanwhile.
func (s *scene) exceeded() *apierrors.StatusError {
	return apierrors.NewForbidden(corev1.Resource("configmaps"), s.key.Name, errors.New("exceeded quota"))
}

func (s *scene) changed() *apierrors.StatusError {
	return apierrors.NewConflict(corev1.Resource("configmaps"), s.key.Name, errors.New("the object has been modified"))
}

// expectLabel waits until the ConfigMap has the greeting.
func (s *scene) expectLabel(greeting string) {
	s.b.Eventually(patience, func() string {
		time.Sleep(10 * time.Millisecond) // many checks may share the API server
		var card corev1.ConfigMap
		if err := s.client.Get(s.b.Context(), s.key, &card); err != nil {
			return "the Lolcow has no ConfigMap of its name"
		}
		if label := card.Labels["greeting"]; label != greeting {
			return fmt.Sprintf("the label of the ConfigMap is %q, and should be %q", label, greeting)
		}
		return ""
	})
}

// news are the lines since the last call.
func (s *scene) news() []operator.Line {
	lines := s.log.Lines()[s.read:]
	s.read += len(lines)
	return lines
}

// count counts the lines since news that are so.
func (s *scene) count(so func(operator.Line) bool) int {
	n := 0
	for _, line := range s.log.Lines()[s.read:] {
		if so(line) {
			n++
		}
	}
	return n
}
