package secondkind

import (
	"context"
	"net/http"
	"slices"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/exercises/internal/defaults"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	// most is how many calls a Flux may need.
	most  = 10
	label = "example.com/team"
)

// scene is a namespace with a Flux, and its controller.
type scene struct {
	b              *check.B
	entry          Entry
	wire           *kube.Wire
	process        *kube.Process
	client, reader client.Client
	key            client.ObjectKey
	// uid is that of the FluxSetup that was there first.
	uid types.UID

	mu     sync.Mutex
	before func()
}

func newScene(b *check.B, entry Entry) *scene {
	scheme := runtime.NewScheme()
	s := &scene{
		b: b, entry: entry, wire: kube.NewWire(b), process: kube.NewProcess(b),
		key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "bees"},
	}
	s.must("making a scheme", v1alpha1.AddToScheme(scheme))
	s.wire.Before(s.intercept)
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	s.must("making a client", err)
	s.reader, err = client.New(s.wire.Config(), client.Options{Scheme: scheme})
	s.must("making a client", err)
	b.Event("a user creates the Flux")
	s.must("creating a Flux", s.client.Create(b.Context(), &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace},
		Spec:       v1alpha1.FluxSpec{Image: "example.com/flux", Command: []string{"hostname"}, Size: 2, MinSize: new(int32(1))},
	}))
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// intercept is called for each request of the controller.
func (s *scene) intercept(request kube.Request, r *http.Request) (*http.Response, error) {
	if kube.Writes(request) {
		s.mu.Lock()
		before := s.before
		s.before = nil
		s.mu.Unlock()
		if before != nil {
			before()
		}
	}
	return s.process.Before(request, r)
}

func (s *scene) beforeTheFirstWrite(f func()) { s.before = f }

func (s *scene) flux() *v1alpha1.Flux {
	var flux v1alpha1.Flux
	s.must("reading the Flux", s.client.Get(s.b.Context(), s.key, &flux))
	return &flux
}

func (s *scene) setup() *v1alpha1.FluxSetup {
	var setup v1alpha1.FluxSetup
	if err := s.client.Get(s.b.Context(), s.key, &setup); err != nil {
		s.b.Fatalf("reading the FluxSetup of the Flux: %v", err)
	}
	return &setup
}

func (s *scene) upgrade() { s.b.Event("the operator is replaced by one with other defaults") }

// call starts the operator, and calls Reconcile once.
func (s *scene) call(operator defaults.Defaults) error {
	s.b.Event("Reconcile, of the operator with %d cores and %d tasks for each rank", operator.Cores, operator.TasksPerRank)
	err := s.process.Run(func(ctx context.Context) error { return s.entry(ctx, s.reader, operator, s.key) })
	if err != nil {
		s.b.Event("  it returned the error: %v", err)
	}
	return err
}

// settle calls Reconcile until it returns no error and writes nothing.
func (s *scene) settle(operator defaults.Defaults) {
	var err error
	for range most {
		seen := len(s.wire.Requests())
		err = s.call(operator)
		if err == nil && !slices.ContainsFunc(s.wire.Requests()[seen:], kube.Writes) {
			s.expectOne()
			return
		}
	}
	if err != nil {
		s.b.Fatalf("after %d calls Reconcile still returns an error, %s: the timeline has it", most, apierrors.ReasonForError(err))
	}
	s.b.Fatalf("after %d calls Reconcile still writes", most)
}

// change changes the Flux, as a user.
func (s *scene) change(change func(*v1alpha1.FluxSpec)) {
	flux := s.flux()
	change(&flux.Spec)
	s.b.Event("the user changes the Flux: suspend %t, startupTimeoutSeconds %d, activeDeadlineSeconds set: %t",
		flux.Spec.Suspend, flux.Spec.StartupTimeoutSeconds, flux.Spec.ActiveDeadlineSeconds != nil)
	s.must("changing the Flux", s.client.Update(s.b.Context(), flux))
}

// write writes the label of a user and, with a launch, what other controllers write when an attempt has failed.
func (s *scene) write(launch *v1alpha1.Launch) {
	s.b.Event("  other writers write a label of the FluxSetup, and spec.launch, attempt and restarts: %t", launch != nil)
	setup := s.setup()
	setup.Labels = map[string]string{label: "apiary"}
	written(&setup.Spec, launch)
	s.must("writing the FluxSetup", s.client.Update(s.b.Context(), setup))
}

func written(spec *v1alpha1.FluxSetupSpec, launch *v1alpha1.Launch) {
	if launch != nil {
		spec.Launch, spec.Attempt, spec.Restarts = launch, 2, 1
	}
}

// owners are those of a FluxSetup.
type owners struct {
	what string
	// of returns them. It gets the reference of a Flux that controls the FluxSetup.
	of func(flux metav1.OwnerReference) []metav1.OwnerReference
}

// uncontrolled are the owners of FluxSetups that the Flux does not control.
var uncontrolled = []owners{
	{"has no owner", func(metav1.OwnerReference) []metav1.OwnerReference { return nil }},
	{"is controlled by an earlier Flux", func(flux metav1.OwnerReference) []metav1.OwnerReference {
		flux.UID = "11111111-2222-3333-4444-555555555555"
		return []metav1.OwnerReference{flux}
	}},
	{"is owned by the Flux, but has no controller", func(flux metav1.OwnerReference) []metav1.OwnerReference {
		flux.Controller = nil
		return []metav1.OwnerReference{flux}
	}},
}

// createSetup creates a FluxSetup with other owners.
func (s *scene) createSetup(other owners) *v1alpha1.FluxSetup {
	flux := s.flux()
	setup := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}, Spec: older.Resolve(flux)}
	// One that follows the Flux already would be the same after a write.
	setup.Spec.Suspend = false
	setup.OwnerReferences = other.of(*metav1.NewControllerRef(flux, v1alpha1.SchemeGroupVersion.WithKind("Flux")))
	s.b.Event("there is a FluxSetup of that name, which %s", other.what)
	s.must("creating a FluxSetup", s.client.Create(s.b.Context(), setup))
	return s.setup()
}

// deleteSetup deletes the FluxSetup, as a user.
func (s *scene) deleteSetup() {
	s.b.Event("  a user deletes the FluxSetup")
	s.must("deleting the FluxSetup", s.client.Delete(s.b.Context(), s.setup()))
}

// expect compares the FluxSetup, which has to be the first one.
func (s *scene) expect(want v1alpha1.FluxSetupSpec) {
	setup := s.setup()
	s.expectOne()
	if !apiequality.Semantic.DeepEqual(setup.Spec, want) {
		s.b.Fatalf("the spec of the FluxSetup is not what it should be: %s", difference(setup.Spec, want))
	}
}

// difference names the first field that differs.
func difference(got, want v1alpha1.FluxSetupSpec) string {
	switch {
	case got.Cores != want.Cores:
		return "cores"
	case got.Tasks != want.Tasks:
		return "tasks"
	case got.Suspend != want.Suspend:
		return "suspend"
	case got.StartupTimeoutSeconds != want.StartupTimeoutSeconds:
		return "startupTimeoutSeconds"
	case !apiequality.Semantic.DeepEqual(got.ActiveDeadlineSeconds, want.ActiveDeadlineSeconds):
		return "activeDeadlineSeconds"
	case !apiequality.Semantic.DeepEqual(got.Launch, want.Launch):
		return "launch"
	case got.Attempt != want.Attempt:
		return "attempt"
	case got.Restarts != want.Restarts:
		return "restarts"
	}
	return "another field"
}

// expectOne checks that the Flux controls the FluxSetup, and that it is still the first one.
func (s *scene) expectOne() {
	setup := s.setup()
	if !metav1.IsControlledBy(setup, s.flux()) {
		s.b.Fatalf("the Flux does not control the FluxSetup")
	}
	if s.uid == "" {
		s.uid = setup.UID
	}
	if setup.UID != s.uid {
		s.b.Fatalf("the FluxSetup was deleted, and created again")
	}
}

// expectWritten compares also what others have written.
func (s *scene) expectWritten(want v1alpha1.FluxSetupSpec, launch *v1alpha1.Launch) {
	written(&want, launch)
	if s.setup().Labels[label] == "" {
		s.b.Fatalf("the label that a user has written is lost")
	}
	s.expect(want)
}

// expectSame checks that the FluxSetup was not written.
func (s *scene) expectSame(before *v1alpha1.FluxSetup) {
	after := s.setup()
	switch {
	case after.UID != before.UID:
		s.b.Fatalf("that FluxSetup was deleted")
	case after.ResourceVersion != before.ResourceVersion:
		s.b.Fatalf("that FluxSetup was changed")
	}
}
