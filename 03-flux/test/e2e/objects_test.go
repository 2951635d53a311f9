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

// firstMeta is that of what each attempt has of its own: here, of the first attempt.
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

// launched is what the first attempt consists of, but for its pods.
func launched(flux *v1alpha1.Flux) []client.Object {
	return []client.Object{jobOf(flux), secretOf(flux), configMapOf(flux), serviceOf(flux)}
}

func (w *world) there(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		w.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// noPods waits until no pod of a Flux is there.
func (w *world) noPods(flux *v1alpha1.Flux, within time.Duration) {
	GinkgoHelper()
	w.Eventually(w.ctx, func() []corev1.Pod { return w.pods(flux) }).WithTimeout(within).WithPolling(expect.Interval).Should(BeEmpty())
}

// leftovers are the objects of a namespace that this stage might have made.
func (w *world) leftovers() []string {
	GinkgoHelper()
	var left []string
	for _, list := range []client.ObjectList{
		&v1alpha1.FluxList{}, &v1alpha1.FluxSetupList{}, &batchv1.JobList{}, &corev1.PodList{},
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
	} {
		w.Expect(env.Client.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		w.Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			// Each namespace gets this one from Kubernetes.
			if object.GetName() != "kube-root-ca.crt" {
				left = append(left, fmt.Sprintf("%T %s", object, object.GetName()))
			}
			return nil
		})).To(Succeed())
	}
	return left
}

// events returns type and reason of the Events about a Flux, in the order in which they were made.
func (w *world) events(flux *v1alpha1.Flux) []string {
	GinkgoHelper()
	var list eventsv1.EventList
	w.Expect(env.Client.List(w.ctx, &list, client.InNamespace(flux.Namespace))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var events []string
	for _, event := range list.Items {
		if event.Regarding.UID == flux.UID {
			events = append(events, event.Type+" "+event.Reason)
		}
	}
	return events
}

// sh is a command for sh, and its arguments.
func sh(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "sh"}, args...)
}
