package e2e

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

// The FluxSetup and the Service have the name of their Flux.

func meta(flux *v1alpha1.Flux) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: flux.Namespace, Name: flux.Name}
}

// firstMeta is the metadata of the first attempt's objects: each attempt has its own Job, Secret and ConfigMap.
func firstMeta(flux *v1alpha1.Flux) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: flux.Namespace, Name: flux.Name + "-1"}
}

func setupOf(flux *v1alpha1.Flux) *v1alpha1.FluxSetup {
	return &v1alpha1.FluxSetup{ObjectMeta: meta(flux)}
}
func serviceOf(flux *v1alpha1.Flux) *corev1.Service { return &corev1.Service{ObjectMeta: meta(flux)} }
func jobOf(flux *v1alpha1.Flux) *batchv1.Job        { return &batchv1.Job{ObjectMeta: firstMeta(flux)} }
func secretOf(flux *v1alpha1.Flux) *corev1.Secret   { return &corev1.Secret{ObjectMeta: firstMeta(flux)} }

func configMapOf(flux *v1alpha1.Flux) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: firstMeta(flux)}
}

// launched are the dependents of the first attempt, without its pods.
func launched(flux *v1alpha1.Flux) []client.Object {
	return []client.Object{jobOf(flux), secretOf(flux), configMapOf(flux), serviceOf(flux)}
}

func (w *testEnv) there(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// noPods waits until a Flux has no pods.
func (w *testEnv) noPods(flux *v1alpha1.Flux, within time.Duration) {
	GinkgoHelper()
	Eventually(w.ctx, func() []corev1.Pod { return w.pods(flux) }).WithTimeout(within).WithPolling(expect.Interval).Should(BeEmpty())
}

// leftovers are the objects of a namespace of the kinds that this stage creates.
func (w *testEnv) leftovers() []string {
	GinkgoHelper()
	var left []string
	for _, list := range []client.ObjectList{
		&v1alpha1.FluxList{}, &v1alpha1.FluxSetupList{}, &batchv1.JobList{}, &corev1.PodList{},
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
	} {
		Expect(env.Client.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			// Kubernetes creates this one in each namespace.
			if object.GetName() != "kube-root-ca.crt" {
				left = append(left, fmt.Sprintf("%T %s", object, object.GetName()))
			}
			return nil
		})).To(Succeed())
	}
	return left
}

// events returns type and reason of the Events about a Flux, in the order of their creation.
func (w *testEnv) events(flux *v1alpha1.Flux) []string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(flux.Namespace))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var events []string
	for _, event := range list.Items {
		if event.Regarding.UID == flux.UID {
			events = append(events, event.Type+" "+event.Reason)
		}
	}
	return events
}

// sh is a command that runs a script with arguments in sh.
func sh(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "sh"}, args...)
}
