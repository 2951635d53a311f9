package twowriters

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// pasture is a namespace with a Lolcow and its Deployment, which two controllers write.
type pasture struct {
	b               *check.B
	wire            *kube.Wire
	client          client.Client
	key             client.ObjectKey
	greeter, scaler *writer
	// greeting and replicas are what the spec says.
	greeting string
	replicas int32
}

// writer is one of the two controllers.
type writer struct {
	name string
	reconcile.Reconciler
}

func newPasture(b *check.B, entry Entry) *pasture {
	p := &pasture{b: b, wire: kube.NewWire(b), greeting: "Moo", replicas: 2}
	p.key = client.ObjectKey{Namespace: kube.Namespace(b), Name: "cow"}
	var err error
	p.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	p.must("making a client", err)
	p.must("creating a Lolcow", p.client.Create(b.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: p.key.Name, Namespace: p.key.Namespace},
		Spec:       v1alpha1.LolcowSpec{Greeting: p.greeting, Replicas: &p.replicas},
	}))
	theirs, err := client.New(p.wire.Config(), client.Options{Scheme: lab.Scheme()})
	p.must("making a client", err)
	greeter, scaler := entry(theirs)
	p.greeter, p.scaler = &writer{"greeter", greeter}, &writer{"scaler", scaler}
	return p
}

func (p *pasture) must(what string, err error) {
	if err != nil {
		p.b.Fatalf("%s: %v", what, err)
	}
}

func (p *pasture) other(one *writer) *writer {
	if one == p.greeter {
		return p.scaler
	}
	return p.greeter
}

// interrupt has something else happen before the next write of the Deployment.
func (p *pasture) interrupt(happens func()) {
	p.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if happens == nil || !kube.Writes(request) || !strings.HasPrefix(request.Resource, "deployments") {
			return nil, nil
		}
		now := happens
		happens = nil
		p.b.Event("  before that, something else happens:")
		now()
		p.b.Event("  and that goes on")
		return nil, nil
	})
}

// try reconciles with one of the two. The error may be another behaviour's.
func (p *pasture) try(one *writer) error {
	p.b.Event("the %s reconciles", one.name)
	_, err := one.Reconcile(p.b.Context(), reconcile.Request{NamespacedName: p.key})
	if err != nil {
		p.b.Event("  the %s returned the error: %v", one.name, err)
	}
	return err
}

// reconcile reconciles with one that has no reason to return an error.
func (p *pasture) reconcile(one *writer) {
	if err := p.try(one); err != nil {
		p.b.Fatalf("the %s returned an error: %v", one.name, err)
	}
}

// change changes the spec, as a user does.
func (p *pasture) change(greeting string, replicas int32) {
	p.b.Event("the user sets %d replicas, and the greeting %s", replicas, greeting)
	p.greeting, p.replicas = greeting, replicas
	lolcow := p.lolcow()
	lolcow.Spec.Greeting, lolcow.Spec.Replicas = greeting, &replicas
	p.must("changing the Lolcow", p.client.Update(p.b.Context(), lolcow))
}

func (p *pasture) lolcow() *v1alpha1.Lolcow {
	var lolcow v1alpha1.Lolcow
	p.must("reading the Lolcow", p.client.Get(p.b.Context(), p.key, &lolcow))
	return &lolcow
}

func (p *pasture) deployment() *appsv1.Deployment {
	var deployment appsv1.Deployment
	p.must("reading the Deployment", p.client.Get(p.b.Context(), p.key, &deployment))
	return &deployment
}

// container returns a container of the Deployment, or nil.
func container(deployment *appsv1.Deployment, name string) *corev1.Container {
	for i := range deployment.Spec.Template.Spec.Containers {
		if one := &deployment.Spec.Template.Spec.Containers[i]; one.Name == name {
			return one
		}
	}
	return nil
}

// expect asserts that the Deployment is what the spec asks for.
func (p *pasture) expect() { p.expectFields(p.greeting, p.replicas) }

func (p *pasture) expectFields(greeting string, replicas int32) {
	for _, wrong := range []string{p.wrongGreeting(greeting), p.wrongReplicas(replicas)} {
		if wrong != "" {
			p.b.Fatalf("%s", wrong)
		}
	}
}

// wrongGreeting is what is wrong with that which the greeter keeps, or an empty string.
func (p *pasture) wrongGreeting(greeting string) string {
	deployment := p.deployment()
	lolcow, args := container(deployment, "lolcow"), []string{"--", greeting}
	switch {
	case lolcow == nil:
		return "the Deployment has no container lolcow"
	case !slices.Equal(lolcow.Args, args):
		return fmt.Sprintf("the arguments of the container should be %q, and are %q", args, lolcow.Args)
	case !metav1.IsControlledBy(deployment, p.lolcow()):
		return "the Lolcow does not own the Deployment"
	}
	return ""
}

// wrongReplicas is the same for the scaler.
func (p *pasture) wrongReplicas(replicas int32) string {
	if is := *p.deployment().Spec.Replicas; is != replicas {
		return fmt.Sprintf("the replicas should be %d, and are %d", replicas, is)
	}
	return ""
}

// inject adds what a service mesh adds: its container comes first.
func (p *pasture) inject() {
	p.b.Event("a service mesh injects a sidecar, and an annotation")
	p.patch(types.StrategicMergePatchType, `{"metadata":{"annotations":{"mesh.example.com/injected":"true"}}}`)
	p.patch(types.JSONPatchType,
		`[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"proxy","image":"proxy:1","args":["--quiet"]}}]`)
}

// edit changes the Deployment as a user does, who owns the fields from then on.
func (p *pasture) edit(what, patch string) {
	p.b.Event("a user edits %s of the Deployment", what)
	p.patch(types.StrategicMergePatchType, patch)
}

func (p *pasture) patch(form types.PatchType, patch string) {
	p.must("patching the Deployment",
		p.client.Patch(p.b.Context(), p.deployment(), client.RawPatch(form, []byte(patch)), client.FieldOwner("another-client")))
}

// expectInjected asserts that what a service mesh has added is there.
func (p *pasture) expectInjected() {
	deployment := p.deployment()
	proxy := container(deployment, "proxy")
	switch {
	case proxy == nil:
		p.b.Fatalf("the container proxy of another client is lost")
	case proxy.Image != "proxy:1" || !slices.Equal(proxy.Args, []string{"--quiet"}):
		p.b.Fatalf("the container proxy of another client was changed: its image is %s, and its arguments are %q", proxy.Image, proxy.Args)
	case deployment.Annotations["mesh.example.com/injected"] != "true":
		p.b.Fatalf("the annotation of another client is lost")
	}
}
