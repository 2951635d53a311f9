// Package suite is what the steps of Part 0 ask of a Lolcow operator. It runs inside a program that is compiled in the
// project that it looks at: see package part0. It knows the project by three things: its types, its reconciler and its
// files. What it asks for, it observes through the API server.
package suite

import (
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
)

// Operator is a reconciler as kubebuilder makes it.
type Operator interface {
	reconcile.Reconciler
	SetupWithManager(mgr ctrl.Manager) error
}

// Project is the project that is checked.
type Project struct {
	// AddToScheme adds its types to a scheme.
	AddToScheme func(*runtime.Scheme) error
	// New makes its reconciler, which sends Events by the recorder if it sends any.
	New func(c client.Client, scheme *runtime.Scheme, recorder events.EventRecorder) Operator
	// Cache are the options of its manager's cache.
	Cache cache.Options
	// Files are those of the project.
	Files fs.FS
}

// Steps are the steps of Part 0, in their order. Each asks for all that those before it ask for.
var Steps = []string{"11a", "11b", "11c", "14a", "12b", "13a", "16a", "16b", "17a", "15c", "17b", "17c"}

// checks are what each step adds.
var checks = map[string]func(*suite){
	"11a": (*suite).types,
	"11b": (*suite).deployment,
	"11c": (*suite).service,
	"14a": (*suite).conditions,
	"12b": (*suite).portConflict,
	"13a": (*suite).permissions,
	"16a": (*suite).failures,
	"16b": (*suite).events,
	"17a": (*suite).owns,
	"15c": (*suite).applies,
	"17b": (*suite).watchesByIndex,
	"17c": (*suite).finalizer,
}

// suite is one run.
type suite struct {
	*check.T
	project Project
	scheme  *runtime.Scheme
	// last is the step that is checked: where two steps ask for the same, the last one says how much of it.
	last   string
	failed bool
}

// Check checks a project for one step and those before it. It ends with the first step that is not done: what follows would
// fail for the same reason.
func Check(t *check.T, step string, project Project) {
	s := &suite{T: t, project: project, scheme: runtime.NewScheme(), last: step}
	if !s.begin() {
		return
	}
	for _, one := range Steps[:slices.Index(Steps, step)+1] {
		if checks[one](s); s.failed && one != step {
			s.Behaviour("the steps before "+step+" are done", func(b *check.B) {
				b.Fatalf("what %s asks for is missing, so %s was not checked. If %[1]s was done before, look first at what you have changed since; its hints: make learn hint %[1]s", one, step)
			})
		}
		if s.failed {
			return
		}
	}
}

// begin prepares what all steps need.
func (s *suite) begin() bool {
	s.behaviour("the API server accepts the CRD in config/crd/bases", func(b *check.B) {
		if err := clientgoscheme.AddToScheme(s.scheme); err != nil {
			b.Fatalf("%v", err)
		}
		if err := s.project.AddToScheme(s.scheme); err != nil {
			b.Fatalf("adding the types of the project to a scheme: %v", err)
		}
		s.installCRD(b)
	})
	return !s.failed
}

// behaviour checks one behaviour, and notes if it is missing.
func (s *suite) behaviour(name string, body func(*check.B)) {
	s.Behaviour(name, func(b *check.B) {
		b.Cleanup(func() { s.failed = s.failed || b.Failed() })
		body(b)
	})
}

// reconciles checks one behaviour of the reconciler. The behaviour has a namespace of its own, and calls Reconcile itself.
func (s *suite) reconciles(name string, body func(*env)) {
	s.behaviour(name, func(b *check.B) { body(s.newEnv(b)) })
}

// text is a value as a message has it.
func text(value any) string {
	if s, ok := value.(string); ok && s == "" {
		return "nothing"
	}
	return fmt.Sprint(value)
}
