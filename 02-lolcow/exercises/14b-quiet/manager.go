package quiet

import (
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
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

// scene is a namespace with a Lolcow, and a manager with the reader's controller.
type scene struct {
	*operator.Operator
	b         *check.B
	entry     Entry
	client    client.Client
	namespace string
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, entry: entry, namespace: kube.Namespace(b)}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	s.must("making a client", err)
	s.must("creating a Lolcow", s.client.Create(b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: s.namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}))
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// start starts a manager with the reader's controller. It remembers nothing of one before.
func (s *scene) start() {
	s.Operator = operator.Start(s.b, s.namespace, s.entry, logr.Discard())
}

func (s *scene) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: "cow"}}
}

func (s *scene) lolcow() *v1alpha1.Lolcow {
	// Many checks may share the API server.
	time.Sleep(10 * time.Millisecond)
	var lolcow v1alpha1.Lolcow
	s.must("reading the Lolcow", s.client.Get(s.b.Context(), s.request().NamespacedName, &lolcow))
	return &lolcow
}

// deployment is nil if there is none.
func (s *scene) deployment() *appsv1.Deployment {
	time.Sleep(10 * time.Millisecond)
	var deployment appsv1.Deployment
	err := s.client.Get(s.b.Context(), s.request().NamespacedName, &deployment)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must("reading the Deployment", err)
	return &deployment
}

// change is what a user does.
func (s *scene) change(greeting string) {
	s.b.Event("the user changes the greeting to %s", greeting)
	lolcow := s.lolcow()
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = greeting
	s.must("changing the Lolcow", s.client.Patch(s.b.Context(), lolcow, client.MergeFrom(before)))
}
