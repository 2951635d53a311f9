package validator

import (
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// patience is for the API server, which uses a changed CRD or webhook a moment later.
const patience = 30 * time.Second

const finalizer = "example.com/milk"

// scene is a namespace for Lolcows, and numbers that no other scene has: ports are the cluster's.
type scene struct {
	b         *check.B
	client    client.Client
	wire      *kube.Wire
	namespace string
	first     int32
}

// last is the number of a Lolcow's port that a handler misses by mistake, if it reads only one part of a list.
const last int32 = 11

var scenes atomic.Int32

func newScene(b *check.B) *scene {
	return &scene{
		b: b, client: newClient(b, kube.Config(b)), wire: kube.NewWire(b),
		namespace: kube.Namespace(b), first: 30000 + 20*scenes.Add(1),
	}
}

func newClient(b *check.B, config *rest.Config) client.Client {
	scheme := runtime.NewScheme()
	_ = v1beta1.AddToScheme(scheme) // it only adds to maps
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	return c
}

// key is how a message names a Lolcow of the scene.
func (s *scene) key(name string) string { return s.namespace + "/" + name }

// number is one that is free unless the scene has used it.
func (s *scene) number(i int32) int32 { return s.first + i }

func port(name string, number int32) v1beta1.LolcowPort {
	return v1beta1.LolcowPort{Name: name, Port: number}
}

// create creates a Lolcow whose ports have the names, and the numbers of the scene from 0 on.
func (s *scene) create(name string, names ...string) error {
	var ports []v1beta1.LolcowPort
	for i, one := range names {
		ports = append(ports, port(one, s.number(int32(i))))
	}
	return s.createWith(name, ports...)
}

func (s *scene) createWith(name string, ports ...v1beta1.LolcowPort) error {
	s.b.Event("a user creates %s with the ports %v", name, ports)
	return s.client.Create(s.b.Context(), s.lolcow(name, ports))
}

func (s *scene) lolcow(name string, ports []v1beta1.LolcowPort) *v1beta1.Lolcow {
	return &v1beta1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Finalizers: []string{finalizer}},
		Spec:       v1beta1.LolcowSpec{Greeting: "Moo", Ports: ports},
	}
}

func (s *scene) get(name string) *v1beta1.Lolcow {
	var lolcow v1beta1.Lolcow
	if err := s.client.Get(s.b.Context(), types.NamespacedName{Namespace: s.namespace, Name: name}, &lolcow); err != nil {
		s.b.Fatalf("reading a Lolcow: %v", err)
	}
	return &lolcow
}

func (s *scene) update(name string, ports ...v1beta1.LolcowPort) error {
	s.b.Event("a user updates %s to the ports %v", name, ports)
	lolcow := s.get(name)
	lolcow.Spec.Ports = ports
	return s.client.Update(s.b.Context(), lolcow)
}

func (s *scene) patch(name, patch string) error {
	s.b.Event("a user patches %s: %s", name, patch)
	return s.client.Patch(s.b.Context(), s.get(name), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// edits changes all but the ports of a Lolcow whose ports are not valid.
func (s *scene) edits(name string) {
	for _, edit := range []struct{ what, patch string }{
		{"a label", `{"metadata":{"labels":{"herd":"brown"}}}`},
		// It is in the spec, as the ports are.
		{"the greeting", `{"spec":{"greeting":"Baa"}}`},
	} {
		if err := s.patch(name, edit.patch); err != nil {
			s.b.Fatalf("a user changes %s of a Lolcow whose ports are from before, and this is rejected: %v", edit.what, err)
		}
	}
}

// finalizes deletes a Lolcow as a user does, and removes its finalizer as a controller does.
func (s *scene) finalizes(name string) {
	s.delete(name)
	if err := s.patch(name, `{"metadata":{"finalizers":null}}`); err != nil {
		s.b.Fatalf("a controller removes the finalizer of a Lolcow that is deleted, and this is rejected, so that it stays: %v", err)
	}
	lolcow := s.lolcow(name, nil)
	if err := s.client.Get(s.b.Context(), client.ObjectKeyFromObject(lolcow), lolcow); !apierrors.IsNotFound(err) {
		s.b.Fatalf("the Lolcow is deleted, and its finalizer removed, and it is still there: %v", err)
	}
}

// delete deletes a Lolcow as a user does. Its finalizer keeps it.
func (s *scene) delete(name string) {
	s.b.Event("a user deletes %s", name)
	if err := s.client.Delete(s.b.Context(), s.lolcow(name, nil)); err != nil {
		s.b.Fatalf("a user deletes a Lolcow, and this is rejected: %v", err)
	}
}
