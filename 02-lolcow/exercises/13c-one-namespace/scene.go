package onenamespace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a cluster in which the operator runs as its ServiceAccount.
type scene struct {
	b      *check.B
	client client.Client
	wire   *kube.Wire
}

// newScene deletes the Lolcows of before, and starts the operator with the reader's options for a namespace.
func newScene(b *check.B, entry Entry, serves string) *scene {
	s := &scene{b: b, client: newClient(b), wire: kube.NewWire(b)}
	for _, namespace := range []string{meadow, elsewhere} {
		s.must("deleting Lolcows", s.client.DeleteAllOf(b.Context(), &v1alpha1.Lolcow{}, client.InNamespace(namespace)))
	}
	b.Event("the operator starts, as cowherd")
	access := s.wire.Config()
	access.Impersonate = rest.ImpersonationConfig{UserName: account}
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:  lab.Scheme(),
		Cache:   entry(serves),
		Metrics: server.Options{BindAddress: "0"},
		Logger:  logr.Discard(),
		Controller: config.Controller{
			SkipNameValidation: new(true),  // there is a manager for each behaviour
			UsePriorityQueue:   new(false), // a key comes after all that were enqueued before
		},
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	s.must("making a manager", err)
	s.must("adding the controller", ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).
		Complete(&herd{mgr.GetClient()}))
	ctx, cancel := context.WithCancel(b.Context())
	stopped := b.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			b.Event("the manager returned an error: %v", err)
		}
	})
	b.Cleanup(func() { cancel(); <-stopped })
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// herd is the operator.
type herd struct{ client client.Client }

// Reconcile keeps a ConfigMap with the greeting of a Lolcow.
func (r *herd) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	card := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, card, func() error {
		card.Data = map[string]string{"greeting": lolcow.Spec.Greeting}
		return nil
	})
	return reconcile.Result{}, err
}

// reads waits until the cache has asked for both kinds, and asserts that it asked for one namespace.
func (s *scene) reads(namespace string) {
	var everywhere []string
	s.b.Eventually(patience, func() string {
		asked := map[string]bool{}
		everywhere = nil
		for _, request := range s.wire.Requests("list", "watch") {
			asked[request.Resource] = true
			if request.Namespace != namespace && !slices.Contains(everywhere, request.Resource) {
				everywhere = append(everywhere, request.Resource)
			}
		}
		if !asked["lolcows"] || !asked["configmaps"] {
			return "the operator does not list Lolcows and ConfigMaps"
		}
		return ""
	})
	if len(everywhere) > 0 {
		slices.Sort(everywhere)
		s.b.Fatalf("for the namespace %s, it lists or watches elsewhere: %s", namespace, strings.Join(everywhere, ", "))
	}
}

// create creates a Lolcow, as a user does.
func (s *scene) create(namespace, name string) {
	s.b.Event("a user creates %s in %s, with the greeting Moo", name, namespace)
	s.must("creating a Lolcow", s.client.Create(s.b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}))
}

// change changes the greeting of cow to Baa, as a user does.
func (s *scene) change() {
	s.b.Event("a user changes the greeting of cow to Baa")
	lolcow := &v1alpha1.Lolcow{}
	s.must("reading a Lolcow", s.client.Get(s.b.Context(), client.ObjectKey{Namespace: meadow, Name: "cow"}, lolcow))
	before := lolcow.DeepCopy()
	lolcow.Spec.Greeting = "Baa"
	s.must("changing a Lolcow", s.client.Patch(s.b.Context(), lolcow, client.MergeFrom(before)))
}

// greeting is what the ConfigMap of that name has, or an empty string if there is none.
func (s *scene) greeting(namespace, name string) string {
	var card corev1.ConfigMap
	err := s.client.Get(s.b.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &card)
	if err != nil && !apierrors.IsNotFound(err) {
		s.b.Fatalf("reading a ConfigMap: %v", err)
	}
	return card.Data["greeting"]
}

// expect waits until the ConfigMap of a Lolcow of meadow has its greeting.
func (s *scene) expect(name, greeting string) {
	s.b.Eventually(patience, func() string {
		if got := s.greeting(meadow, name); got != greeting {
			return fmt.Sprintf("the greeting of %s is %s, and its ConfigMap has %q", name, greeting, got)
		}
		return ""
	})
}
