package brokenwatch

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a Goop, one call of Wait, and all others that write the Goop.
type scene struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client client.Client
	reader client.WithWatch
	key    client.ObjectKey
	goop   *v1alpha1.Goop
	ctx    context.Context
	end    context.CancelFunc

	returned <-chan struct{}
	code     int
	err      error
}

func newScene(b *check.B, entry Entry) *scene {
	scheme := runtime.NewScheme()
	// They only add to maps.
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	s := &scene{b: b, entry: entry, wire: kube.NewWire(b), key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "moo"}}
	s.ctx, s.end = context.WithCancel(b.Context())
	b.Cleanup(s.end)
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	s.must("making a client", err)
	config := s.wire.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: s.allowUser(), Groups: []string{"system:authenticated"}}
	s.reader, err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: s.client.RESTMapper()})
	s.must("making a client", err)
	s.other()
	s.create()
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// allowUser creates a user who may read the Goops of the namespace, and returns the name.
func (s *scene) allowUser() string {
	name := "reader-of-" + s.key.Namespace
	object := metav1.ObjectMeta{Namespace: s.key.Namespace, Name: "reader"}
	s.must("creating a Role", s.client.Create(s.b.Context(), &rbacv1.Role{ObjectMeta: object, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"goops"}, Verbs: []string{"get", "list", "watch"},
	}}}))
	s.must("creating a RoleBinding", s.client.Create(s.b.Context(), &rbacv1.RoleBinding{
		ObjectMeta: object,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: object.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	kube.WaitAllowed(s.b, name, authorizationv1.ResourceAttributes{
		Namespace: s.key.Namespace, Verb: "watch", Group: v1alpha1.SchemeGroupVersion.Group, Resource: "goops",
	})
	return name
}

// create creates a Goop. The first one is that of Wait.
func (s *scene) create() {
	goop := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}, Spec: v1alpha1.GoopSpec{Cmd: []string{"true"}},
	}
	s.must("creating a Goop", s.client.Create(s.b.Context(), goop))
	s.b.Event("a user creates a Goop, with the UID %s", goop.UID)
	if s.goop == nil {
		s.goop = goop
	}
}

// other creates a Goop with another name, which has ended. In a list it comes before the Goop.
func (s *scene) other() {
	goop := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, GenerateName: "calf-"}, Spec: v1alpha1.GoopSpec{Cmd: []string{"true"}},
	}
	s.must("creating another Goop", s.client.Create(s.b.Context(), goop))
	end(goop, v1alpha1.ConditionComplete)
	s.must("writing the status of another Goop", s.client.Status().Update(s.b.Context(), goop))
}

// delete deletes the Goop, as another user.
func (s *scene) delete() {
	s.b.Event("a user deletes the Goop")
	s.must("deleting the Goop", s.client.Delete(s.b.Context(), s.get()))
}

func (s *scene) get() *v1alpha1.Goop {
	var goop v1alpha1.Goop
	s.must("reading the Goop", s.client.Get(s.b.Context(), s.key, &goop))
	return &goop
}

// working is a change of the status that is not the end.
func (s *scene) working() {
	s.b.Event("another Goop ends, and the operator reports that a worker of this one runs")
	s.other()
	goop := s.get()
	goop.Status.Desired++
	s.must("writing the status", s.client.Status().Update(s.b.Context(), goop))
}

// ends writes the end of the work, which has failed if there is an exit code.
func (s *scene) ends(code *int32) {
	condition := v1alpha1.ConditionComplete
	if code != nil {
		condition = v1alpha1.ConditionFailed
	}
	s.b.Event("the operator reports the end: %s", condition)
	goop := s.get()
	goop.Status.ExitCode = code
	end(goop, condition)
	s.must("writing the status", s.client.Status().Update(s.b.Context(), goop))
}

func end(goop *v1alpha1.Goop, condition string) {
	apimeta.SetStatusCondition(&goop.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: "Ended",
	})
}

// call calls Wait.
func (s *scene) call() {
	s.b.Event("Wait is called")
	goop := s.goop.DeepCopy()
	s.returned = s.b.Go(func() { s.code, s.err = s.entry(s.ctx, s.reader, goop) })
}

// start calls Wait, and waits until it watches.
func (s *scene) start() {
	s.call()
	s.watches()
}

// watches waits until Wait watches, or has returned.
func (s *scene) watches() {
	before := len(s.wire.Requests())
	s.b.Eventually(begin, func() string {
		if n := len(s.wire.Requests()) - before; n > tries {
			s.b.Fatalf("Wait has sent more than %d requests, and does not watch", tries)
		}
		if s.wire.OpenWatches() == 0 && !s.hasReturned() {
			return "Wait does not watch"
		}
		return ""
	})
}

// away lets the next requests of a kind fail. In that time, pauses allow few of them.
func (s *scene) away(kind func(kube.Request) bool) {
	failed, since := 0, time.Time{}
	s.wire.Fail(math.MaxInt, func(request kube.Request) bool {
		if !kind(request) || (failed >= failures && time.Since(since) > away) {
			return false
		}
		if failed == 0 {
			since = time.Now()
		}
		failed++
		return true
	})
}

// cut cuts the watch, and waits for the next one.
func (s *scene) cut() { s.meanwhile(func() {}) }

// meanwhile cuts the watch. Before the next one can begin, something happens.
func (s *scene) meanwhile(change func()) {
	s.wire.CutWatches()
	change()
	s.wire.Release()
	s.watches()
}

func (s *scene) cancel() {
	s.b.Event("the context of Wait ends")
	s.end()
}

func (s *scene) hasReturned() bool {
	select {
	case <-s.returned:
		return true
	default:
		return false
	}
}

// wait waits until Wait has returned.
func (s *scene) wait() {
	s.b.Eventually(patience, func() string {
		if !s.hasReturned() {
			return "Wait has not returned"
		}
		return ""
	})
	s.b.Event("Wait has returned %d, and the error: %v", s.code, s.err)
}

func (s *scene) returns(code int) {
	s.wait()
	switch {
	case s.err != nil:
		s.b.Fatalf("Wait returned an error: %v", s.err)
	case s.code != code:
		s.b.Fatalf("Wait returned %d, and should have returned %d", s.code, code)
	}
}

func (s *scene) fails(why string) {
	s.wait()
	if s.err == nil {
		s.b.Fatalf("%s, and Wait returned %d without an error", why, s.code)
	}
}

// reads are the requests by which Wait has read Goops, without watches.
func (s *scene) reads() []kube.Request { return s.wire.Requests("get", "list") }

// onlyGoops checks that no other request was sent. One for what the API server serves, whose path begins with a slash, is no object's.
func (s *scene) onlyGoops() {
	other := func(request kube.Request) bool {
		return !strings.HasPrefix(request.Resource, "/") && (request.Resource != "goops" || kube.Writes(request))
	}
	if at := slices.IndexFunc(s.wire.Requests(), other); at >= 0 {
		s.b.Fatalf("it sent this, which the user may not: %s", s.wire.Requests()[at])
	}
}
