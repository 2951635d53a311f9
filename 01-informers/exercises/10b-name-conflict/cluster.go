package nameconflict

import (
	"net/http"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const fooName = "a"

// cluster is a namespace with one Foo, and Deployments of others.
type cluster struct {
	b           *check.B
	entry       Entry
	wire        *kube.Wire
	namespace   string
	deployments typedappsv1.DeploymentInterface
	// foos is the check's, and throughWire the reader's.
	foos, throughWire versioned.Interface
	uid               types.UID
	// others are the resourceVersions of Deployments that are not the Foo's.
	others map[string]string
	// events are the reasons of those that the reader's function sent.
	events []string
}

func start(b *check.B, entry Entry) *cluster {
	c := &cluster{b: b, entry: entry, wire: kube.NewWire(b), namespace: kube.Namespace(b), others: map[string]string{}}
	c.deployments = kube.Client(b).AppsV1().Deployments(c.namespace)
	var err error
	if c.foos, err = versioned.NewForConfig(kube.Config(b)); err != nil {
		b.Fatalf("making a client: %v", err)
	}
	if c.throughWire, err = versioned.NewForConfig(c.wire.Config()); err != nil {
		b.Fatalf("making a client: %v", err)
	}
	f, err := c.foos.FooV1alpha1().Foos(c.namespace).Create(b.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: fooName}, Spec: v1alpha1.FooSpec{DeploymentName: "one"},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a Foo: %v", err)
	}
	c.uid = f.UID
	return c
}

func (c *cluster) event(reason, message string) {
	c.b.Event("  Event %s: %s", reason, message)
	c.events = append(c.events, reason)
}

// before lets something happen just before the next write of a Deployment that is of a kind.
func (c *cluster) before(kind func(kube.Request) bool, happens func()) {
	var once sync.Once
	c.wire.Before(func(r kube.Request, _ *http.Request) (*http.Response, error) {
		if r.Resource == "deployments" && kube.Writes(r) && kind(r) {
			once.Do(happens)
		}
		return nil, nil
	})
}

// earlierFoo is the owner reference of a Foo of the same name that was there before.
func earlierFoo() metav1.OwnerReference {
	earlier := &metav1.ObjectMeta{Name: fooName, UID: "11111111-2222-3333-4444-555555555555"}
	return *metav1.NewControllerRef(earlier, v1alpha1.SchemeGroupVersion.WithKind("Foo"))
}

// createOther creates a Deployment that the Foo does not control. It has the labels of one that the Foo controls, so that an apply by
// force would not fail.
func (c *cluster) createOther(name string, owners ...metav1.OwnerReference) {
	c.b.Event("another user creates Deployment %s", name)
	for _, owner := range owners {
		c.b.Event("  it is controlled by Foo %s with the uid %s", owner.Name, owner.UID)
	}
	labels := map[string]string{"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": fooName}
	created, err := c.deployments.Create(c.b.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foo", Image: "example.com/other"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.b.Fatalf("creating a Deployment: %v", err)
	}
	c.others[name] = created.ResourceVersion
}

// replace deletes a Deployment, and creates one of another user's in its place.
func (c *cluster) replace(name string) {
	c.delete(name)
	c.createOther(name)
}

// edit changes a Deployment of the Foo, so that there is something to set back.
func (c *cluster) edit(name string) {
	c.b.Event("another user sets the replicas of Deployment %s to 7", name)
	_, err := c.deployments.Patch(c.b.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{})
	if err != nil {
		c.b.Fatalf("changing a Deployment: %v", err)
	}
}

func (c *cluster) delete(name string) {
	c.b.Event("another user deletes Deployment %s", name)
	if err := c.deployments.Delete(c.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.b.Fatalf("deleting a Deployment: %v", err)
	}
}

// rename changes the name in the spec to two.
func (c *cluster) rename() {
	c.b.Event("the user sets spec.deploymentName to two")
	_, err := c.foos.FooV1alpha1().Foos(c.namespace).Patch(c.b.Context(), fooName, types.MergePatchType,
		[]byte(`{"spec":{"deploymentName":"two"}}`), metav1.PatchOptions{})
	if err != nil {
		c.b.Fatalf("changing the Foo: %v", err)
	}
}

// get returns a Deployment, or nil if there is none.
func (c *cluster) get(name string) *appsv1.Deployment {
	live, err := c.deployments.Get(c.b.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.b.Errorf("reading a Deployment: %v", err)
	}
	return live
}

// expectOther asserts that a Deployment of another user is as that user has left it. If there is none, Reconcile has not sent the
// request that it was to come before.
func (c *cluster) expectOther(name string) {
	created := c.others[name]
	switch live := c.get(name); {
	case created == "":
	case live == nil:
		c.b.Fatalf("Deployment %s of another user was deleted", name)
	case live.ResourceVersion != created:
		c.b.Fatalf("Deployment %s of another user was changed", name)
	}
}

// expectOwn asserts that there is a Deployment, and that the Foo controls it.
func (c *cluster) expectOwn(name string) {
	live := c.get(name)
	if live == nil {
		c.b.Fatalf("there is no Deployment %s", name)
	}
	if owner := metav1.GetControllerOf(live); owner == nil || owner.UID != c.uid {
		c.b.Fatalf("Deployment %s is not controlled by the Foo", name)
	}
}

func (c *cluster) expectReady(reason string) {
	f, err := c.foos.FooV1alpha1().Foos(c.namespace).Get(c.b.Context(), fooName, metav1.GetOptions{})
	if err != nil {
		c.b.Fatalf("reading the Foo: %v", err)
	}
	ready := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		c.b.Fatalf("there is no condition Ready, which should be False with %s", reason)
	case ready.Status != metav1.ConditionFalse || ready.Reason != reason:
		c.b.Fatalf("Ready is %s with the reason %s, and should be False with %s", ready.Status, ready.Reason, reason)
	}
}

// expectEvents asserts how many Events were sent for a conflict.
func (c *cluster) expectEvents(want int) {
	conflicts := slices.DeleteFunc(slices.Clone(c.events), func(reason string) bool { return reason != v1alpha1.ReasonNameConflict })
	if n := len(conflicts); n != want {
		c.b.Fatalf("the number of Events with the reason NameConflict is %d, and should be %d", n, want)
	}
}
