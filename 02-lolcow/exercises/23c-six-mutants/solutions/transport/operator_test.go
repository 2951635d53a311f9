//go:build start

package sixmutants

import (
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
)

// wire is what the operator's requests go through.
type wire struct {
	next   http.RoundTripper
	writes int
	reject bool
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return w.next.RoundTrip(request)
	}
	w.writes++
	if w.reject {
		request = request.Clone(request.Context())
		// The API server rejects what it does not know.
		request.URL.Path = strings.Replace(request.URL.Path, "/deployments", "/none", 1)
	}
	return w.next.RoundTrip(request)
}

// scene is a Lolcow of the name cow, and an operator.
type scene struct {
	*testing.T
	*wire
	client client.Client
	key    client.ObjectKey
	// result is that of the last reconciliation.
	result error
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{T: t, wire: &wire{}, client: lab.Client(t), key: client.ObjectKey{Namespace: lab.Namespace(t), Name: "cow"}}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) lolcow(greeting string) *v1alpha1.Lolcow {
	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	lolcow.Spec.Greeting = greeting
	return lolcow
}

// reconcile has a new operator reconcile the Lolcow.
func (s *scene) reconcile() {
	s.Helper()
	config := lab.Config(s)
	config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s.wire
	}))
	c, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	s.must(err)
	s.writes = 0
	_, s.result = subject.New(c).Reconcile(s.Context(), ctrl.Request{NamespacedName: s.key})
}

func (s *scene) greeting() string {
	s.Helper()
	var deployment appsv1.Deployment
	s.must(s.client.Get(s.Context(), s.key, &deployment))
	args := deployment.Spec.Template.Spec.Containers[0].Args
	return args[len(args)-1]
}

func TestReconcile(t *testing.T) {
	for name, kept := range map[string]func(s *scene) bool{
		"greeting": func(s *scene) bool {
			lolcow := s.lolcow("Moo")
			s.must(s.client.Create(s.Context(), lolcow))
			s.reconcile()
			first := s.greeting()
			lolcow.Spec.Greeting = "Baa"
			s.must(s.client.Update(s.Context(), lolcow))
			s.reconcile()
			return first == "Moo" && s.greeting() == "Baa"
		},
		"not owned": func(s *scene) bool {
			// As a Lolcow leaves it that was deleted, and created again.
			before := s.lolcow("before")
			before.UID = "none"
			s.must(s.client.Create(s.Context(), subject.New(nil).Desired(before)))
			s.must(s.client.Create(s.Context(), s.lolcow("Moo")))
			s.reconcile()
			return s.greeting() == "before" && s.writes == 0
		},
		"steady state": func(s *scene) bool {
			s.must(s.client.Create(s.Context(), s.lolcow("Moo")))
			s.reconcile()
			s.reconcile()
			return s.writes == 0
		},
		"rejected": func(s *scene) bool {
			s.must(s.client.Create(s.Context(), s.lolcow("Moo")))
			s.reject = true
			s.reconcile()
			return s.result != nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !kept(newScene(t)) {
				t.Error("this promise is broken")
			}
		})
	}
}

func TestSelectors(t *testing.T) {
	selectors := map[string]bool{}
	for _, name := range []string{"one", "other"} {
		lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		selectors[metav1.FormatLabelSelector(subject.New(nil).Desired(lolcow).Spec.Selector)] = true
	}
	if len(selectors) != 2 {
		t.Errorf("two Deployments have the selectors %v", selectors)
	}
}

func TestManager(t *testing.T) {
	s := newScene(t)
	mgr, err := ctrl.NewManager(lab.Config(t), ctrl.Options{
		Scheme: lab.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.key.Namespace: {}}},
	})
	s.must(err)
	s.must(subject.New(mgr.GetClient()).SetupWithManager(mgr))
	go func() { _ = mgr.Start(t.Context()) }()
	s.must(s.client.Create(t.Context(), s.lolcow("Moo")))
	for _, event := range []string{"the first Deployment", "another one"} {
		var deployment appsv1.Deployment
		lab.Eventually(t, event, func() bool { return s.client.Get(t.Context(), s.key, &deployment) == nil })
		s.must(s.client.Delete(t.Context(), &deployment))
	}
}
