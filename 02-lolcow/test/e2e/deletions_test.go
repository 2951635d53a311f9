package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

var _ = Describe("Deleting", func() {
	e2e.Deletions(env, []e2e.Deletion{
		deletes("the Lolcow", theLolcow, background, "leaves nothing", (*deleted).leavesNothing),
		deletes("the Lolcow", theLolcow, foreground, "leaves nothing", (*deleted).leavesNothing),
		deletes("the Lolcow", theLolcow, orphan, "leaves what serves, which another Lolcow of that name does not change", (*deleted).isNotAdopted),
		deletes("the Deployment", theDeployment, background, "has it made again", (*deleted).isMadeAgain),
		deletes("the Deployment", theDeployment, foreground, "has it made again", (*deleted).isMadeAgain),
		deletes("the Deployment", theDeployment, orphan, "has it made again, and its pod serves on", (*deleted).servesOn),
		deletes("the Service", theService, background, "has it made again", (*deleted).isMadeAgain),
		deletes("the Service", theService, foreground, "has it made again", (*deleted).isMadeAgain),
		deletes("the Service", theService, orphan, "has it made again, and its pod serves on", (*deleted).servesOn),
	})
})

func theLolcow(l *v1alpha1.Lolcow) client.Object     { return l.DeepCopy() }
func theDeployment(l *v1alpha1.Lolcow) client.Object { return deploymentOf(l) }
func theService(l *v1alpha1.Lolcow) client.Object    { return serviceOf(l) }

// deletes is the deletion of a Lolcow that serves, or of one of its dependents.
func deletes(what string, which func(*v1alpha1.Lolcow) client.Object, cascade metav1.DeletionPropagation, outcome string, check func(*deleted)) e2e.Deletion {
	return e2e.Deletion{
		Name: fmt.Sprintf("%s, with --cascade=%s, %s", what, strings.ToLower(string(cascade)), outcome),
		Begin: func(ctx SpecContext) e2e.DeletionSteps {
			d := &deleted{ctx: ctx, lolcow: create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{Greeting: "Moo"})}
			return e2e.DeletionSteps{
				Reach: func() { d.serves(which) },
				Delete: func() {
					Expect(env.Client.Delete(ctx, d.object.DeepCopyObject().(client.Object), client.PropagationPolicy(cascade))).To(Succeed())
				},
				Collect: func() { d.isCollected(cascade) },
				Expect:  func() { check(d) },
			}
		},
	}
}

// deleted is what is deleted, and what there was before.
type deleted struct {
	ctx        context.Context
	lolcow     *v1alpha1.Lolcow
	object     client.Object
	deployment *appsv1.Deployment
	service    *corev1.Service
	pods       []types.UID
}

func (d *deleted) serves(which func(*v1alpha1.Lolcow) client.Object) {
	GinkgoHelper()
	expectServing(d.ctx, d.lolcow)
	d.object, d.deployment, d.service = which(d.lolcow), deploymentOf(d.lolcow), serviceOf(d.lolcow)
	for _, object := range []client.Object{d.object, d.deployment, d.service} {
		refresh(d.ctx, object)
	}
	d.pods = d.livePods()
	Expect(d.pods).To(HaveLen(1))
}

// isCollected waits until the object is gone, and its dependents, or their owner references, with it.
func (d *deleted) isCollected(cascade metav1.DeletionPropagation) {
	GinkgoHelper()
	expect.Gone(d.ctx, env.Client, d.object)
	if _, isService := d.object.(*corev1.Service); isService || cascade == orphan {
		return
	}
	Eventually(d.ctx, d.livePods).WithTimeout(expect.Eventually).WithPolling(expect.Interval).Should(BeEmpty())
	if _, isLolcow := d.object.(*v1alpha1.Lolcow); isLolcow {
		d.leavesNothing()
	}
}

func (d *deleted) leavesNothing() {
	GinkgoHelper()
	Eventually(d.ctx, d.left).WithTimeout(expect.Eventually).WithPolling(expect.Interval).Should(BeEmpty())
}

// isNotAdopted creates a Lolcow of the same name. It serves when the user has deleted what was orphaned.
func (d *deleted) isNotAdopted() {
	GinkgoHelper()
	expect.Gone(d.ctx, env.Client, d.object)
	lolcow := create(d.ctx, d.lolcow.Namespace, d.lolcow.Name, v1alpha1.LolcowSpec{Greeting: "Baa"})
	expectNotReady(d.ctx, lolcow, v1alpha1.ReasonNameConflict)
	deployment, service := deploymentOf(lolcow), serviceOf(lolcow)
	expect.Always(d.ctx, env.Client, deployment, func(g Gomega, live *appsv1.Deployment) {
		g.Expect(live.UID).To(Equal(d.deployment.UID))
		g.Expect(live.Spec.Template).To(Equal(d.deployment.Spec.Template), "with its greeting")
		g.Expect(d.livePods()).To(Equal(d.pods))
	})
	refresh(d.ctx, service)
	Expect(service.UID).To(Equal(d.service.UID))
	Expect(service.Spec.Ports).To(Equal(d.service.Spec.Ports), "at its port")

	Expect(env.Client.Delete(d.ctx, deployment)).To(Succeed())
	Expect(env.Client.Delete(d.ctx, service)).To(Succeed())
	expectServing(d.ctx, lolcow)
	Expect(lolcow.Status.Greeting).To(Equal("Baa"))
}

// isMadeAgain waits until there is another object, and nothing is left of the first one.
func (d *deleted) isMadeAgain() {
	GinkgoHelper()
	expect.Object(d.ctx, env.Client, d.object.DeepCopyObject().(client.Object), func(g Gomega, live client.Object) {
		g.Expect(live.GetUID()).NotTo(Equal(d.object.GetUID()))
	})
	Eventually(d.ctx, d.left).WithTimeout(expect.Eventually).WithPolling(expect.Interval).Should(ConsistOf(
		"*v1alpha1.Lolcow cow", "*v1.Deployment cow", HavePrefix("*v1.ReplicaSet cow-"), HavePrefix("*v1.Pod cow-"), "*v1.Service cow"))
	deployment, service := deploymentOf(d.lolcow), serviceOf(d.lolcow)
	expect.Object(d.ctx, env.Client, deployment, func(g Gomega, live *appsv1.Deployment) {
		g.Expect(live.Status.AvailableReplicas).To(BeEquivalentTo(1))
	})
	refresh(d.ctx, service)
	expect.Object(d.ctx, env.Client, d.lolcow, func(g Gomega, live *v1alpha1.Lolcow) {
		g.Expect(live.Status.Port).To(Equal(service.Spec.Ports[0].NodePort))
	})
	expectServing(d.ctx, d.lolcow)
	Expect(d.lolcow.Status.Greeting).To(Equal("Moo"))
	if env.Cluster.RunsContainers() {
		expectGreeting(d.ctx, d.lolcow.Status.Port, "Moo")
	}
}

// servesOn waits until there is another object, for the same pod.
func (d *deleted) servesOn() {
	GinkgoHelper()
	d.isMadeAgain()
	Expect(d.livePods()).To(Equal(d.pods))
}

func (d *deleted) livePods() (uids []types.UID) {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(env.Client.List(d.ctx, &pods, client.InNamespace(d.lolcow.Namespace))).To(Succeed())
	for _, pod := range pods.Items {
		uids = append(uids, pod.UID)
	}
	return uids
}

// left are the objects of the namespace of the kinds that there are because of a Lolcow.
func (d *deleted) left() (objects []string) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{
		&v1alpha1.LolcowList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{},
	} {
		Expect(env.Client.List(d.ctx, list, client.InNamespace(d.lolcow.Namespace))).To(Succeed())
		Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
			return nil
		})).To(Succeed())
	}
	return objects
}
