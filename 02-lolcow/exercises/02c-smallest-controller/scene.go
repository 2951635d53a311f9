package smallest

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a user, and a manager with the reader's controller.
type scene struct {
	b      *check.B
	entry  Entry
	client kubernetes.Interface

	// These are the manager's.
	wire *kube.Wire
	stop func()
}

func newScene(b *check.B, entry Entry) *scene {
	return &scene{b: b, entry: entry, client: kube.Client(b), wire: kube.NewWire(b)}
}

// start starts a manager with the reader's controller.
func (s *scene) start() {
	s.b.Event("the controller starts")
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(s.wire.Config(), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{
			SkipNameValidation: new(true),  // there is a manager for each behaviour
			UsePriorityQueue:   new(false), // a key comes after all that were enqueued before
		},
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	if err != nil {
		s.b.Fatalf("making a manager: %v", err)
	}
	if err := s.entry(mgr); err != nil {
		s.b.Fatalf("Setup returned an error: %v", err)
	}
	ctx, cancel := context.WithCancel(s.b.Context())
	stopped := s.b.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			s.b.Errorf("the manager returned an error: %v", err)
		}
	})
	s.stop = func() {
		cancel()
		<-stopped
		s.b.Event("the controller has stopped")
		s.wire = kube.NewWire(s.b)
	}
	s.b.Cleanup(func() { cancel(); <-stopped })
}

// create creates a Namespace, as a user.
func (s *scene) create() string {
	name := kube.Namespace(s.b)
	s.b.Event("a user creates the Namespace %s", name)
	return name
}

// patch changes a Namespace, as a user.
func (s *scene) patch(name, patch string) {
	s.b.Event("a user changes the Namespace %s: %s", name, patch)
	_, err := s.client.CoreV1().Namespaces().Patch(s.b.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.b.Errorf("changing a Namespace: %v", err)
	}
}

// labelled waits until a Namespace has the label.
func (s *scene) labelled(name string) {
	s.b.Eventually(patience, func() string {
		if value, found := s.label(name, "seen"); value != "yes" {
			return fmt.Sprintf("the Namespace should have the label seen=yes, and has %s", describe(value, found))
		}
		return ""
	})
}

// has checks that a label is there.
func (s *scene) has(name, label, want string) {
	if value, found := s.label(name, label); value != want {
		s.b.Fatalf("another client has written the label %s=%s, and now the Namespace has %s", label, want, describe(value, found))
	}
}

func describe(value string, found bool) string {
	if !found {
		return "no such label"
	}
	return fmt.Sprintf("the value %q", value)
}

func (s *scene) label(name, label string) (string, bool) {
	namespace, err := s.client.CoreV1().Namespaces().Get(s.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.b.Fatalf("reading a Namespace: %v", err)
	}
	value, found := namespace.Labels[label]
	return value, found
}
