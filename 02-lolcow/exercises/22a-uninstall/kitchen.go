package uninstall

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	finalizer    = "kitchen.example.com/cleanup"
	operatorName = "kitchen-operator"
	crdName      = "teapots.kitchen.example.com"
	// slow is how often the operator looks before it has cleaned up.
	slow = 20
)

const manifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teapots.kitchen.example.com}
spec:
  group: kitchen.example.com
  scope: Namespaced
  names: {kind: Teapot, plural: teapots}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

var teapots = schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Teapot"}

// kitchen is a cluster with the operator, which the check simulates.
type kitchen struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client client.Client
	reader client.Client

	mu sync.Mutex
	// made and cleaned have the Teapots by UID, seen how often the operator has seen that one is being deleted.
	made, cleaned map[types.UID]string
	seen          map[types.UID]int
	stuck         string
	// limit is how long Uninstall may take.
	limit time.Duration
	// early is how many looks of the reader's code are to come before the operator cleans up.
	early int
	// looked is called when the reader's code asks for Teapots.
	looked func()
}

func newKitchen(b *check.B, entry Entry) *kitchen {
	k := &kitchen{
		b: b, entry: entry, wire: kube.NewWire(b), stuck: "stuck", limit: limit,
		made: map[types.UID]string{}, cleaned: map[types.UID]string{}, seen: map[types.UID]int{},
	}
	var err error
	k.client, err = client.New(kube.Config(b), client.Options{})
	k.must("making a client", err)
	k.reset()
	kube.InstallCRD(b, []byte(manifest))
	// The client looks anew which kinds there are.
	k.client, err = client.New(kube.Config(b), client.Options{})
	k.must("making a client", err)
	labels := map[string]string{"app": operatorName}
	k.must("creating a Deployment", k.client.Create(b.Context(), &appsv1.Deployment{
		ObjectMeta: k.operator().ObjectMeta,
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "example.com/kitchen"}}},
			},
		},
	}))
	k.newClient()
	k.wire.Before(k.observe)
	stopped := b.Go(k.operate)
	b.Cleanup(func() { <-stopped })
	return k
}

func (k *kitchen) must(what string, err error) {
	if err != nil {
		k.b.Fatalf("%s: %v", what, err)
	}
}

// newClient gives the reader a client that knows nothing of the cluster.
func (k *kitchen) newClient() {
	var err error
	k.reader, err = client.New(k.wire.Config(), client.Options{})
	k.must("making a client", err)
}

func (k *kitchen) operator() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: operatorName}}
}

func (k *kitchen) crd() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(crdName)
	return crd
}

// list returns the Teapots that there are.
func (k *kitchen) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(teapots.GroupVersion().WithKind("TeapotList"))
	err := k.client.List(ctx, list)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	return list.Items, err
}

func (k *kitchen) release(ctx context.Context, object client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(k.client.Patch(ctx, object, patch))
}

// reset removes what a behaviour before this one has left.
func (k *kitchen) reset() {
	ctx := k.b.Context()
	left, err := k.list(ctx)
	k.must("listing Teapots", err)
	for i := range left {
		k.must("removing a finalizer", k.release(ctx, &left[i]))
	}
	k.must("deleting a Deployment", client.IgnoreNotFound(k.client.Delete(ctx, k.operator())))
	k.deleteCRD()
}

// deleteCRD deletes the CRD, and waits until it is gone.
func (k *kitchen) deleteCRD() {
	k.must("deleting a CRD", client.IgnoreNotFound(k.client.Delete(k.b.Context(), k.crd())))
	k.isGone(k.crd(), "the CRD")
}

// createTwo creates one Teapot in the namespace of the operator, and one elsewhere.
func (k *kitchen) createTwo() {
	k.create(metav1.NamespaceDefault, "one")
	k.create(kube.Namespace(k.b), "two")
}

// create creates a Teapot, as a user.
func (k *kitchen) create(namespace, name string) {
	pot := &unstructured.Unstructured{}
	pot.SetGroupVersionKind(teapots)
	pot.SetNamespace(namespace)
	pot.SetName(name)
	pot.SetFinalizers([]string{finalizer})
	k.b.Event("a user creates the Teapot %s/%s", pot.GetNamespace(), name)
	k.must("creating a Teapot", k.client.Create(k.b.Context(), pot))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made[pot.GetUID()] = name
}

// operate is the operator: it cleans up after Teapots that are being deleted, as long as its Deployment exists.
func (k *kitchen) operate() {
	ctx := k.b.Context()
	for ctx.Err() == nil {
		operator := k.operator()
		pots, err := k.list(ctx)
		if err == nil && k.client.Get(ctx, client.ObjectKeyFromObject(operator), operator) == nil {
			// What the garbage collector does for a deletion in the foreground.
			if operator.DeletionTimestamp != nil {
				_ = k.release(ctx, operator)
			}
			for i := range pots {
				k.cleanUp(ctx, &pots[i])
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (k *kitchen) cleanUp(ctx context.Context, pot *unstructured.Unstructured) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pot.GetDeletionTimestamp() == nil || !slices.Contains(pot.GetFinalizers(), finalizer) || pot.GetName() == k.stuck {
		return
	}
	if k.early > 0 && k.wire.OpenWatches() == 0 {
		return
	}
	if k.seen[pot.GetUID()]++; k.seen[pot.GetUID()] < slow {
		return
	}
	k.cleaned[pot.GetUID()] = pot.GetName()
	k.b.Event("  the operator has cleaned up after %s", pot.GetName())
	_ = k.release(ctx, pot)
}

func (k *kitchen) unstick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stuck = ""
}

// call calls Uninstall.
func (k *kitchen) call(ctx context.Context) error {
	k.b.Event("Uninstall is called")
	ctx, cancel := context.WithTimeout(ctx, k.b.Patience(k.limit))
	defer cancel()
	err := k.entry(ctx, k.reader)
	k.b.Event("Uninstall has returned the error: %v", err)
	return err
}

// uninstall calls Uninstall, which has no reason to return an error.
func (k *kitchen) uninstall() {
	if err := k.call(k.b.Context()); err != nil {
		k.b.Fatalf("nothing is in the way, and Uninstall returned the error at the end of the timeline")
	}
}

func (k *kitchen) nothingIsLeft() {
	k.isGone(k.operator(), "the Deployment of the operator")
	k.isGone(k.crd(), "the CRD")
}

func (k *kitchen) isGone(object client.Object, what string) {
	k.b.Eventually(patience, func() string {
		err := k.client.Get(k.b.Context(), client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return fmt.Sprintf("reading %s: %v", what, err)
		case object.GetDeletionTimestamp() != nil:
			return what + " is being deleted, and does not go: Teapots are left"
		}
		return what + " is still there"
	})
}

// stays checks that what is needed to go on is there, and that the finalizer is the operator's to remove.
func (k *kitchen) stays(name string) {
	pots, err := k.list(k.b.Context())
	k.must("listing Teapots", err)
	if len(pots) != 1 || pots[0].GetName() != name || !slices.Contains(pots[0].GetFinalizers(), finalizer) {
		k.b.Fatalf("the Teapot %s was not cleaned up, and is not as it was: %d Teapots are there", name, len(pots))
	}
	for _, object := range []client.Object{k.operator(), k.crd()} {
		err := k.client.Get(k.b.Context(), client.ObjectKeyFromObject(object), object)
		if err != nil || object.GetDeletionTimestamp() != nil {
			k.b.Fatalf("a Teapot was not cleaned up, and %s is not there any more, or is being deleted (%v)", object.GetName(), err)
		}
	}
}

func (k *kitchen) allCleanedUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid := range k.made {
		if k.cleaned[uid] == "" {
			k.b.Fatalf("the operator has not cleaned up after each Teapot")
		}
	}
}
