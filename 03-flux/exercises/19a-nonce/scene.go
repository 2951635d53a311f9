package nonce

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	machineKey = "machine"
	// sizeKey is one that the user writes.
	sizeKey = "size"
	// most is how many calls one ConfigMap may need.
	most = 10
)

// scene is a namespace with the ConfigMap web, the controller, and the provider.
type scene struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	process   *kube.Process
	namespace string
	client    typedcorev1.ConfigMapInterface
	reader    typedcorev1.ConfigMapInterface

	mu sync.Mutex
	// known are the machines by nonce, and launched is how many there are.
	known    map[string]string
	launched int
	// inCall happens in the next call of the provider. It returns whether the launch takes effect, and its error.
	inCall func() (bool, error)
	// old is what reads return, if it is set. before happens before the next write.
	old    map[string]corev1.ConfigMap
	before func()
	// size is what the user has written last, and oldMachine is in their file, if it is set.
	size, oldMachine string
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, entry: entry, wire: kube.NewWire(b), process: kube.NewProcess(b), namespace: kube.Namespace(b), known: map[string]string{}}
	s.client = kube.Client(b).CoreV1().ConfigMaps(s.namespace)
	s.reader = s.wire.Client().CoreV1().ConfigMaps(s.namespace)
	s.wire.Before(s.intercept)
	s.create("web")
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// Launch is that of the provider.
func (s *scene) Launch(ctx context.Context, nonce string) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err() // a process that has crashed sends nothing
	}
	s.mu.Lock()
	inCall := s.inCall
	s.inCall = nil
	s.mu.Unlock()
	effect, err := true, error(nil)
	if inCall != nil {
		effect, err = inCall()
	}
	var machine string
	if effect {
		machine = s.launch(nonce)
	}
	if err != nil {
		s.b.Event("  the call of the provider fails: %v", err)
		return "", err
	}
	return machine, nil
}

func (s *scene) launch(nonce string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if machine := s.known[nonce]; machine != "" {
		s.b.Event("  the provider knows the nonce %q: it is that of %s", nonce, machine)
		return machine
	}
	s.launched++
	machine := fmt.Sprintf("machine-%d", s.launched)
	s.b.Event("  the provider launches %s for the nonce %q", machine, nonce)
	if nonce != "" {
		s.known[nonce] = machine
	}
	return machine
}

// forget is what the provider does after a day.
func (s *scene) forget() {
	s.b.Event("a month passes: the provider has forgotten all nonces")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = map[string]string{}
}

func (s *scene) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launched
}

// intercept is called for each request of the controller.
func (s *scene) intercept(request kube.Request, r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	old, before := s.old, s.before
	if kube.Writes(request) {
		s.before = nil
	}
	s.mu.Unlock()
	if kube.Writes(request) && before != nil {
		before()
	}
	if old != nil && (request.Verb == "get" || request.Verb == "list") && !s.process.Dead() {
		s.b.Event("  it reads what was there earlier")
		return s.stale(r, old, request), nil
	}
	return s.process.Before(request, r)
}

// readOld lets the controller read what was there earlier, or what is there if old is nil.
func (s *scene) readOld(old map[string]corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = old
}

// otherReplicaBeforeTheFirstWrite lets another replica reconcile just before the first write.
func (s *scene) otherReplicaBeforeTheFirstWrite(name string) {
	s.before = func() {
		s.b.Event("  another replica reconciles %s", name)
		err := s.entry(s.b.Context(), s.client, s, name)
		s.b.Event("  the other replica returned the error: %v", err)
	}
}

// call starts the controller, and calls Reconcile once.
func (s *scene) call(name string) error {
	s.b.Event("Reconcile %s", name)
	err := s.process.Run(func(ctx context.Context) error { return s.entry(ctx, s.reader, s, name) })
	if err != nil {
		s.b.Event("  it returned the error: %v", err)
	}
	return err
}

// settle calls Reconcile until it returns no error and nothing has changed. Meanwhile the garbage collector works.
func (s *scene) settle(name string) {
	for range most {
		before := s.versions()
		err := s.call(name)
		changed := !maps.Equal(before, s.versions())
		if collected := s.collect(); err == nil && !changed && !collected {
			return
		}
	}
	s.b.Fatalf("after %d calls there is still no end: the last one changed something, or returned an error", most)
}

// versions changes with each change of a ConfigMap.
func (s *scene) versions() map[string]string {
	versions := map[string]string{}
	for name, object := range s.all() {
		versions[name] = object.ResourceVersion
	}
	return versions
}

func (s *scene) get(name string) *corev1.ConfigMap {
	object, err := s.client.Get(s.b.Context(), name, metav1.GetOptions{})
	s.must("reading a ConfigMap", err)
	return object
}

// all are the ConfigMaps of the namespace by name.
func (s *scene) all() map[string]corev1.ConfigMap {
	list, err := s.client.List(s.b.Context(), metav1.ListOptions{})
	s.must("listing ConfigMaps", err)
	all := map[string]corev1.ConfigMap{}
	for _, object := range list.Items {
		all[object.Name] = object
	}
	return all
}

func (s *scene) expectNotTheFirst(name string) {
	if machine := s.get(name).Data[machineKey]; machine == "machine-1" {
		s.b.Fatalf("the new ConfigMap has machine-1, which was launched for the deleted one")
	}
}

// expect checks that there are that many machines in all, the last of which is that of the ConfigMap.
func (s *scene) expect(name string, machines int) {
	data := s.get(name).Data
	machine := data[machineKey]
	switch count := s.count(); {
	case count > machines:
		s.b.Fatalf("%d machines were launched, and one was needed: data.machine is %q", count-machines+1, machine)
	case count < machines:
		s.b.Fatalf("no machine was launched, and data.machine is %q", machine)
	case machine != fmt.Sprintf("machine-%d", machines):
		s.b.Fatalf("machine-%d was launched, and data.machine is %q", machines, machine)
	case data[sizeKey] != s.size:
		s.b.Fatalf("data.%s, which the user has written, is lost", sizeKey)
	}
}
