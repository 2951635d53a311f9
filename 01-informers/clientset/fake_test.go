package main

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// in is one test's pods, on a real API server or on the fake.
type in struct {
	*testing.T
	*WithT
	client    kubernetes.Interface
	namespace string
}

func (i in) create(pod *corev1.Pod) (*corev1.Pod, error) {
	return i.client.CoreV1().Pods(i.namespace).Create(i.Context(), pod, metav1.CreateOptions{})
}

func (i in) mustCreate(names ...string) *corev1.Pod {
	var last *corev1.Pod
	for _, name := range names {
		pod, err := i.create(lesson.Pod(name))
		i.Expect(err).NotTo(HaveOccurred())
		last = pod
	}
	return last
}

func (i in) list(options metav1.ListOptions) string {
	list, err := i.client.CoreV1().Pods(i.namespace).List(i.Context(), options)
	i.Expect(err).NotTo(HaveOccurred())
	return fmt.Sprint(len(list.Items))
}

// verdict is how a request ended.
func verdict(err error) string {
	if err == nil {
		return "accepted"
	}
	return string(apierrors.ReasonForError(err))
}

// fact is what a server and the fake say to the same requests.
type fact struct {
	do           func(in) string
	server, fake string
}

// found are facts of what is there, and what is found.
var found = map[string]fact{
	"finds what it was given": {func(i in) string {
		i.mustCreate("a", "b")
		return i.list(metav1.ListOptions{})
	}, "2", "2"},

	"knows one name from another": {func(i in) string {
		i.mustCreate("a")
		_, err := i.create(lesson.Pod("a"))
		return verdict(err)
	}, "AlreadyExists", "AlreadyExists"},

	"selects by label": {func(i in) string {
		pod := lesson.Pod("a")
		pod.Labels = map[string]string{"app": "web"}
		_, err := i.create(pod)
		i.Expect(err).NotTo(HaveOccurred())
		i.mustCreate("b")
		return i.list(metav1.ListOptions{LabelSelector: "app=web"})
	}, "1", "1"},

	"selects by field": {func(i in) string {
		i.mustCreate("a", "b")
		return i.list(metav1.ListOptions{FieldSelector: "metadata.name=a"})
	}, "1", "2"},

	"lists in pages": {func(i in) string {
		i.mustCreate("a", "b")
		return i.list(metav1.ListOptions{Limit: 1})
	}, "1", "2"},

	"validates": {func(i in) string {
		_, err := i.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}})
		return verdict(err)
	}, "Invalid", "accepted"},

	"needs the namespace to be there": {func(i in) string {
		i.namespace = "never-made"
		_, err := i.create(lesson.Pod("a"))
		return verdict(err)
	}, "NotFound", "accepted"},

	"sets defaults": {func(i in) string {
		return string(i.mustCreate("a").Spec.RestartPolicy)
	}, "Always", ""},

	"gives out uid, version and time": {func(i in) string {
		pod := i.mustCreate("a")
		return fmt.Sprintf("uid %t, version %t, time %t", pod.UID != "", pod.ResourceVersion != "", !pod.CreationTimestamp.IsZero())
	}, "uid true, version true, time true", "uid false, version false, time false"},
}

// kept are facts of what becomes of what is written.
var kept = map[string]fact{
	"makes up a name": {func(i in) string {
		pod := lesson.Pod("")
		pod.GenerateName = "a-"
		pod, err := i.create(pod)
		i.Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint(pod.Name != "")
	}, "true", "false"},

	"refuses an update of what has changed": {func(i in) string {
		pod := i.mustCreate("a")
		pod.ResourceVersion = "1"
		_, err := i.client.CoreV1().Pods(i.namespace).Update(i.Context(), pod, metav1.UpdateOptions{})
		return verdict(err)
	}, "Conflict", "accepted"},

	"heeds preconditions": {func(i in) string {
		i.mustCreate("a")
		return verdict(i.client.CoreV1().Pods(i.namespace).Delete(i.Context(), "a",
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}))
	}, "Conflict", "accepted"},

	"keeps an update from the status": {func(i in) string {
		pod := i.mustCreate("a")
		pod.Status.Message = "changed"
		pod, err := i.client.CoreV1().Pods(i.namespace).Update(i.Context(), pod, metav1.UpdateOptions{})
		i.Expect(err).NotTo(HaveOccurred())
		return pod.Status.Message
	}, "", "changed"},

	"keeps a status update from the spec": {func(i in) string {
		pod := i.mustCreate("a")
		pod.Spec.Containers[0].Image = "example.com/another"
		pod, err := i.client.CoreV1().Pods(i.namespace).UpdateStatus(i.Context(), pod, metav1.UpdateOptions{})
		i.Expect(err).NotTo(HaveOccurred())
		return pod.Spec.Containers[0].Image
	}, "example.com/none", "example.com/another"},

	"knows who owns a field": {func(i in) string {
		apply := func(manager, value string) error {
			_, err := i.client.CoreV1().ConfigMaps(i.namespace).Apply(i.Context(),
				corev1ac.ConfigMap("c", i.namespace).WithData(map[string]string{"key": value}),
				metav1.ApplyOptions{FieldManager: manager})
			return err
		}
		i.Expect(apply("one", "1")).To(Succeed())
		return verdict(apply("two", "2"))
	}, "Conflict", "Conflict"},
}

// What the fake clientset does as a server does, and what it does not. Both are given the same requests.
func TestFakeClientsetBesideARealServer(t *testing.T) {
	t.Parallel()
	for _, facts := range []map[string]fact{found, kept} {
		for name, test := range facts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				g.Expect(test.do(in{t, g, testserver.Client(t), testserver.Namespace(t)})).To(Equal(test.server), "a server")
				g.Expect(test.do(in{t, g, fake.NewClientset(), "any"})).To(Equal(test.fake), "the fake")
			})
		}
	}
}

// NewSimpleClientset, which NewClientset replaces, keeps no managed fields.
func TestSimpleClientsetKnowsNoFieldOwners(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "any"}}
	client := fake.NewSimpleClientset(configMap)
	for _, manager := range []string{"one", "two"} {
		_, err := client.CoreV1().ConfigMaps("any").Apply(t.Context(),
			corev1ac.ConfigMap("c", "any").WithData(map[string]string{"key": manager}),
			metav1.ApplyOptions{FieldManager: manager})
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// What it is for: a test asks what was done, and has requests fail.
func TestFakeRecordsAndFailsOnDemand(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client := fake.NewClientset()
	client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not today")
	})
	pods := client.CoreV1().Pods("any")
	_, err := pods.Create(t.Context(), lesson.Pod("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = pods.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"web"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Delete(t.Context(), "a", metav1.DeleteOptions{})).To(MatchError("not today"))

	var asked []string
	for _, action := range client.Actions() {
		asked = append(asked, action.GetVerb()+" "+action.GetResource().Resource)
	}
	g.Expect(asked).To(Equal([]string{"create pods", "patch pods", "delete pods"}))
}

// A fake watch replays what there is, unless it is given the version of a list. It remembers no deletion.
func TestFakeWatchTellsOfNoMissedDeletion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	i := in{t, g, fake.NewClientset(), "any"}
	pods := i.client.CoreV1().Pods("any")
	i.mustCreate("a", "b")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Delete(t.Context(), "a", metav1.DeleteOptions{})).To(Succeed())
	i.mustCreate("c")

	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Stop)
	i.mustCreate("d")
	for _, want := range []string{"c", "d"} {
		var event watch.Event
		g.Eventually(w.ResultChan()).Should(Receive(&event))
		g.Expect(event.Type).To(Equal(watch.Added))
		g.Expect(event.Object.(*corev1.Pod).Name).To(Equal(want))
	}
}
