package notmine

import (
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// most is how many calls a FluxSetup may need.
const most = 10

// scene is a namespace with a FluxSetup, and the reader's controller.
type scene struct {
	b              *check.B
	entry          Entry
	wire           *kube.Wire
	client, reader client.Client
	key            client.ObjectKey
	// seen is how many requests there were before the last call.
	seen int
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	return scheme
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, entry: entry, wire: kube.NewWire(b), key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "bees"}}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: newScheme()})
	s.must("making a client", err)
	s.reader, err = client.New(s.wire.Config(), client.Options{Scheme: newScheme()})
	s.must("making a client", err)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) createFlux(name string) *v1alpha1.Flux {
	s.b.Event("a user creates the Flux %s", name)
	flux := &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.key.Namespace},
		Spec:       v1alpha1.FluxSpec{Image: "example.com/flux", Command: []string{"hostname"}},
	}
	s.must("creating a Flux", s.client.Create(s.b.Context(), flux))
	return flux
}

func (s *scene) deleteFlux(flux *v1alpha1.Flux) {
	s.b.Event("the user deletes the Flux %s", flux.Name)
	s.must("deleting a Flux", s.client.Delete(s.b.Context(), flux))
}

// controller is the owner reference that the Flux controller writes.
func (s *scene) controller(flux *v1alpha1.Flux) metav1.OwnerReference {
	return *metav1.NewControllerRef(flux, v1alpha1.SchemeGroupVersion.WithKind("Flux"))
}

func newSetup(key client.ObjectKey) *v1alpha1.FluxSetup {
	return &v1alpha1.FluxSetup{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace},
		Spec: v1alpha1.FluxSetupSpec{
			Image: "example.com/flux", Command: []string{"hostname"}, Mode: v1alpha1.ModeSubmit, Size: 1, MinSize: 1, Tasks: 1, Cores: 1,
			StartupTimeoutSeconds: 60, Attempt: 1,
		},
	}
}

// createSetup creates the FluxSetup bees with these owners.
func (s *scene) createSetup(owners ...metav1.OwnerReference) {
	setup := newSetup(s.key)
	setup.OwnerReferences = owners
	for _, owner := range owners {
		s.b.Event("a FluxSetup bees is created, whose owner is the Flux %s with the UID %s, controller: %t",
			owner.Name, owner.UID, owner.Controller != nil)
	}
	if len(owners) == 0 {
		s.b.Event("a user creates the FluxSetup bees, without an owner")
	}
	s.must("creating a FluxSetup", s.client.Create(s.b.Context(), setup))
}

func (s *scene) setOwner(owner metav1.OwnerReference) {
	s.b.Event("the Flux controller writes its owner reference into the FluxSetup")
	setup := s.setup()
	setup.OwnerReferences = []metav1.OwnerReference{owner}
	s.must("writing a FluxSetup", s.client.Update(s.b.Context(), setup))
}

func (s *scene) setup() *v1alpha1.FluxSetup {
	var setup v1alpha1.FluxSetup
	err := s.client.Get(s.b.Context(), s.key, &setup)
	if apierrors.IsNotFound(err) {
		s.b.Fatalf("the FluxSetup was deleted")
	}
	s.must("reading the FluxSetup", err)
	return &setup
}

// reconcile calls Reconcile once.
func (s *scene) reconcile() error {
	s.seen = len(s.wire.Requests())
	s.b.Event("Reconcile")
	err := s.entry(s.b.Context(), s.reader, s.key)
	if err != nil {
		s.b.Event("  it returned the error: %v", err)
	}
	return err
}

// settle calls Reconcile until it returns no error and nothing changes.
func (s *scene) settle() {
	var err error
	for range most {
		before := s.versions()
		if err = s.reconcile(); err == nil && s.versions() == before {
			return
		}
	}
	if err != nil {
		s.b.Fatalf("after %d calls Reconcile still returns an error, %s: the timeline has it", most, apierrors.ReasonForError(err))
	}
	s.b.Fatalf("after %d calls Reconcile still changes something", most)
}

// versions are those of the FluxSetup and of the Service, if there is one.
func (s *scene) versions() [2]string {
	var service corev1.Service
	s.must("reading the Service", client.IgnoreNotFound(s.client.Get(s.b.Context(), s.key, &service)))
	return [2]string{s.setup().ResourceVersion, service.ResourceVersion}
}

func (s *scene) deleteService() {
	s.b.Event("a user deletes the Service")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	s.must("deleting the Service", client.IgnoreNotFound(s.client.Delete(s.b.Context(), service)))
}

// failService lets the next write of a Service fail.
func (s *scene) failService() {
	s.wire.Fail(1, func(r kube.Request) bool { return r.Resource == "services" && kube.Writes(r) })
}

func (s *scene) expectService(want bool) {
	err := s.client.Get(s.b.Context(), s.key, &corev1.Service{})
	s.must("reading the Service", client.IgnoreNotFound(err))
	switch {
	case want && err != nil:
		s.b.Fatalf("there is no Service")
	case !want && err == nil:
		s.b.Fatalf("a Service was created")
	}
}

func (s *scene) expectAccepted(status metav1.ConditionStatus, reason string) {
	accepted := apimeta.FindStatusCondition(s.setup().Status.Conditions, v1alpha1.ConditionAccepted)
	switch {
	case accepted == nil:
		s.b.Fatalf("there is no condition Accepted, which should be %s, %s", status, reason)
	case accepted.Status != status || accepted.Reason != reason:
		s.b.Fatalf("Accepted is %s, %s, and should be %s, %s", accepted.Status, accepted.Reason, status, reason)
	}
}

// writeOtherCondition writes a condition that is not that of this controller.
func (s *scene) writeOtherCondition() {
	s.b.Event("another controller writes the condition %s", v1alpha1.ConditionQuorumReached)
	setup := s.setup()
	apimeta.SetStatusCondition(&setup.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionTrue, Reason: "Connected",
	})
	s.must("writing the status of the FluxSetup", s.client.Status().Update(s.b.Context(), setup))
}

// otherConditionBeforeTheFirstStatus lets another controller write its condition just before the first write of the status.
func (s *scene) otherConditionBeforeTheFirstStatus() {
	var once sync.Once
	s.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Writes(request) && request.Resource == "fluxsetups/status" {
			once.Do(s.writeOtherCondition)
		}
		return nil, nil
	})
}

func (s *scene) expectOtherCondition() {
	if apimeta.FindStatusCondition(s.setup().Status.Conditions, v1alpha1.ConditionQuorumReached) == nil {
		s.b.Fatalf("the condition %s, which another controller has written, is lost", v1alpha1.ConditionQuorumReached)
	}
}

// expectNotOwned reconciles, and checks that nothing was created.
func (s *scene) expectNotOwned() {
	s.settle()
	s.expectService(false)
	s.expectAccepted(metav1.ConditionFalse, "NotOwned")
}

func (s *scene) expectUnchanged(before *v1alpha1.FluxSetup) {
	after := s.setup()
	switch {
	case after.UID != before.UID:
		s.b.Fatalf("the FluxSetup was deleted, and created again")
	case !after.DeletionTimestamp.IsZero():
		s.b.Fatalf("the FluxSetup is being deleted")
	case !apiequality.Semantic.DeepEqual(after.Spec, before.Spec) || !apiequality.Semantic.DeepEqual(after.OwnerReferences, before.OwnerReferences) ||
		len(after.Labels)+len(after.Annotations)+len(after.Finalizers) > 0:
		s.b.Fatalf("the FluxSetup of the user was changed")
	}
}

func (s *scene) expectNoWrite() {
	for _, request := range s.wire.Requests()[s.seen:] {
		if kube.Writes(request) && request.Resource != "services" {
			s.b.Fatalf("nothing has changed, and this was sent: %s", request)
		}
	}
}
