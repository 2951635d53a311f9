package usedfield

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	// variable has the flavour in the container with this name.
	variable, container = "FLAVOUR", "teapot"
	// patience is for what the operator does.
	patience = 10 * time.Second
)

// behave runs the operator.
func (p *project) behave(t *check.T) {
	ok := t.Behaviour("the Pods have the flavour in the variable FLAVOUR", func(b *check.B) {
		p.operator = p.program.Start(b, "--teapot-image=teapot:latest", "--metrics-bind-address=0", "--health-probe-bind-address=0")
		p.ends = append(p.ends, p.operator.Stop)
		p.create(b, "mint").expectVariable("mint")
	})
	if !ok {
		return
	}
	t.Behaviour("status.flavour is that of the Pods, once all have it", func(b *check.B) {
		s := p.create(b, "mint")
		s.expectVariable("mint")
		s.expectStatusStays("")
		s.rollOut()
		s.expectStatus("mint")
	})
	t.Behaviour("a change arrives in the Pods, and then in the status", func(b *check.B) {
		s := p.create(b, "mint")
		s.expectVariable("mint")
		s.rollOut()
		s.expectStatus("mint")
		s.change("lemon")
		s.expectVariable("lemon")
		s.expectStatusStays("mint")
		s.rollOut()
		s.expectStatus("lemon")
	})
	t.Behaviour("without a flavour the Pods have no variable, and the status has none", func(b *check.B) {
		s := p.create(b, "mint")
		s.expectVariable("mint")
		s.rollOut()
		s.expectStatus("mint")
		s.change("")
		s.expectVariable("")
		s.rollOut()
		s.expectStatus("")
	})
	t.Behaviour("a program in the Pods reads what the spec says", func(b *check.B) {
		const text = "$$ $(PORT)"
		s := p.create(b, text)
		s.expectVariable(text)
		s.rollOut()
		s.expectStatus(text)
	})
	t.Behaviour("what the API server rejects is not in the status", func(b *check.B) {
		s := p.create(b, "")
		s.expectVariable("")
		s.occupy()
		s.rollOut()
		s.change("mint")
		s.expectStatusStays("")
	})
	t.Behaviour("a container that another client adds has no say", func(b *check.B) {
		s := p.create(b, "mint")
		s.expectVariable("mint")
		s.addContainer()
		s.expectVariable("mint")
		s.rollOut()
		s.expectStatus("mint")
	})
}

// scene is one Teapot, in a namespace of its own.
type scene struct {
	b      *check.B
	p      *project
	client client.Client
	teapot *unstructured.Unstructured
}

func (p *project) create(b *check.B, flavour string) *scene {
	s, err := p.try(b, flavour)
	if err != nil {
		b.Fatalf("creating a Teapot: %v", err)
	}
	return s
}

func (p *project) try(b *check.B, flavour string) (*scene, error) {
	c, err := client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	spec := map[string]any{}
	if flavour != "" {
		spec["flavour"] = flavour
	}
	s := &scene{b: b, p: p, client: c, teapot: &unstructured.Unstructured{Object: map[string]any{"spec": spec}}}
	s.teapot.SetAPIVersion("teapots.dev/v1alpha1")
	s.teapot.SetKind("Teapot")
	s.teapot.SetNamespace(kube.Namespace(b))
	s.teapot.SetName("tea")
	b.Event("kubectl create: a Teapot with the flavour %q", flavour)
	return s, c.Create(b.Context(), s.teapot)
}

// field returns the flavour in the spec or in the status.
func (s *scene) field(of string) string {
	value, _, err := unstructured.NestedString(s.teapot.Object, of, "flavour")
	if err != nil {
		s.b.Fatalf("%v", err)
	}
	return value
}

// change sets another flavour, or none.
func (s *scene) change(flavour string) {
	s.b.Event("kubectl patch: the flavour is %q", flavour)
	var value any = flavour
	if flavour == "" {
		value = nil
	}
	s.patch(s.teapot, types.MergePatchType, map[string]any{"spec": map[string]any{"flavour": value}})
}

func (s *scene) patch(object client.Object, of types.PatchType, patch any) {
	content, err := json.Marshal(patch)
	if err == nil {
		err = s.client.Patch(s.b.Context(), object, client.RawPatch(of, content))
	}
	if err != nil {
		s.b.Fatalf("patching: %v", err)
	}
}

func (s *scene) deployment() (*appsv1.Deployment, error) {
	var deployment appsv1.Deployment
	err := s.client.Get(s.b.Context(), client.ObjectKeyFromObject(s.teapot), &deployment)
	return &deployment, err
}

// expectVariable waits until the Pods of the Deployment have this flavour, or none.
func (s *scene) expectVariable(flavour string) {
	s.b.Eventually(patience, func() string {
		s.p.operator.ExpectAlive(s.b)
		deployment, err := s.deployment()
		if err != nil {
			return fmt.Sprintf("there is no Deployment: %v", err)
		}
		for _, one := range deployment.Spec.Template.Spec.Containers {
			if one.Name == container {
				return difference(one.Env, flavour)
			}
		}
		return "the Deployment has no container " + container
	})
	s.b.Event("the variable %s is as expected for %q", variable, flavour)
}

func difference(env []corev1.EnvVar, flavour string) string {
	for _, one := range env {
		// The kubelet halves $$, and replaces $(NAME) by the value of another variable.
		switch read := strings.ReplaceAll(one.Value, "$$", "$"); {
		case one.Name != variable:
		case flavour == "":
			return fmt.Sprintf("the Teapot has no flavour, and the variable %s is there, with the value %q", variable, one.Value)
		case read != flavour:
			return fmt.Sprintf("the flavour is %q, and the value of the variable %s is %q", flavour, variable, one.Value)
		default:
			return ""
		}
	}
	if flavour != "" {
		return fmt.Sprintf("the flavour is %q, and the container has no variable %s", flavour, variable)
	}
	return ""
}

// rollOut simulates the controller of Deployments, and its Pods.
func (s *scene) rollOut() {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		deployment, err := s.deployment()
		if err != nil {
			return err
		}
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		}
		return s.client.Status().Update(s.b.Context(), deployment)
	})
	if err != nil {
		s.b.Fatalf("simulating a rollout: %v", err)
	}
	s.b.Event("all Pods are of the present template, and available")
}

// expectStatus waits until the status has this flavour, or none.
func (s *scene) expectStatus(flavour string) {
	s.b.Eventually(patience, func() string {
		s.get()
		if is := s.field("status"); is != flavour {
			return fmt.Sprintf("the flavour of all Pods is %q, and status.flavour is %q", flavour, is)
		}
		return ""
	})
}

// expectStatusStays waits until the status has been written for the spec, and fails if it has another flavour then.
func (s *scene) expectStatusStays(flavour string) {
	s.b.Eventually(patience, func() string {
		s.get()
		observed, _, err := unstructured.NestedInt64(s.teapot.Object, "status", "observedGeneration")
		if err != nil || observed != s.teapot.GetGeneration() {
			return fmt.Sprintf("status.observedGeneration is %d, and metadata.generation is %d", observed, s.teapot.GetGeneration())
		}
		return ""
	})
	if is := s.field("status"); is != flavour {
		s.b.Fatalf("the flavour of the spec is %q, no Pod has it yet, and status.flavour is %q", s.field("spec"), is)
	}
}

func (s *scene) get() {
	s.p.operator.ExpectAlive(s.b)
	if err := s.client.Get(s.b.Context(), client.ObjectKeyFromObject(s.teapot), s.teapot); err != nil {
		s.b.Fatalf("reading the Teapot: %v", err)
	}
}

// occupy gives the variable to another client: with what that has set, the API server accepts no value.
func (s *scene) occupy() {
	deployment, err := s.deployment()
	if err != nil {
		s.b.Fatalf("reading the Deployment: %v", err)
	}
	s.b.Event("another client sets the variable %s of the container %s, by valueFrom", variable, container)
	s.patch(deployment, types.StrategicMergePatchType, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []map[string]any{{"name": container, "env": []map[string]any{
			{"name": variable, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}},
		}}},
	}}}})
}

// addContainer adds one in front of that of the operator, as a webhook does that injects a proxy.
func (s *scene) addContainer() {
	deployment, err := s.deployment()
	if err != nil {
		s.b.Fatalf("reading the Deployment: %v", err)
	}
	s.b.Event("another client adds a container, with a variable %s of its own", variable)
	s.patch(deployment, types.JSONPatchType, []map[string]any{{
		"op": "add", "path": "/spec/template/spec/containers/0", "value": map[string]any{
			"name": "proxy", "image": "proxy:latest", "env": []map[string]any{{"name": variable, "value": "salt"}},
		},
	}})
}
