package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

func deploymentWith(wanted int32, status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(wanted),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "sidecar", Args: []string{"--", "not the greeting"}},
				{Name: containerName, Args: []string{"--", "Moo"}},
			}}},
		},
		Status: status,
	}
}

func all(n int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n}
}

func unpulled(name, reason, message string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Image: "img", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}},
	}
}

func TestReadyCondition(t *testing.T) {
	t.Parallel()
	service := &corev1.Service{}
	stale, surging, unavailable := all(2), all(2), all(2)
	stale.ObservedGeneration = 1
	surging.Replicas = 3
	unavailable.AvailableReplicas = 1
	ending := all(0)
	ending.TerminatingReplicas = new(int32(1))
	badPod := []corev1.Pod{unpulled("cow-1", "ErrImagePull", "no such image")}

	for name, test := range map[string]struct {
		observed observation
		want     string
	}{
		"nothing there yet":             {observation{}, v1alpha1.ReasonRollingOut},
		"all available":                 {observation{deployment: deploymentWith(2, all(2)), service: service}, v1alpha1.ReasonServing},
		"no Service":                    {observation{deployment: deploymentWith(2, all(2))}, v1alpha1.ReasonRollingOut},
		"status of an older generation": {observation{deployment: deploymentWith(2, stale), service: service}, v1alpha1.ReasonRollingOut},
		"an old pod still there":        {observation{deployment: deploymentWith(2, surging), service: service}, v1alpha1.ReasonRollingOut},
		"a pod not available":           {observation{deployment: deploymentWith(2, unavailable), service: service}, v1alpha1.ReasonRollingOut},
		"none wanted, none left":        {observation{deployment: deploymentWith(0, all(0)), service: service}, v1alpha1.ReasonScaledToZero},
		"none wanted, some left":        {observation{deployment: deploymentWith(0, all(1)), service: service}, v1alpha1.ReasonRollingOut},
		"none wanted, one still ends":   {observation{deployment: deploymentWith(0, ending), service: service}, v1alpha1.ReasonRollingOut},
		"no image":                      {observation{deployment: deploymentWith(2, unavailable), service: service, pods: badPod}, v1alpha1.ReasonImageNotPulled},
		"a leftover pod without image":  {observation{deployment: deploymentWith(2, all(2)), service: service, pods: badPod}, v1alpha1.ReasonServing},
		"waiting for something else": {observation{deployment: deploymentWith(2, unavailable), service: service,
			pods: []corev1.Pod{unpulled("cow-1", "ContainerCreating", "")}}, v1alpha1.ReasonRollingOut},
		"rejected, though all serve": {observation{deployment: deploymentWith(2, all(2)), service: service,
			failure: &failure{reason: v1alpha1.ReasonPortConflict}}, v1alpha1.ReasonPortConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ready := readyCondition(test.observed)
			g.Expect(ready.Reason).To(Equal(test.want))
			want := metav1.ConditionFalse
			if test.want == v1alpha1.ReasonServing {
				want = metav1.ConditionTrue
			}
			g.Expect(ready.Status).To(Equal(want))
		})
	}
}

func TestStatusGreeting(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.Lolcow{Status: v1alpha1.LolcowStatus{Greeting: "old"}}
	rolling := all(2)
	rolling.UpdatedReplicas = 1
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       string
	}{
		"served":          {deploymentWith(2, all(2)), "Moo"},
		"rolling out":     {deploymentWith(2, rolling), "old"},
		"no Deployment":   {nil, ""},
		"scaled to zero":  {deploymentWith(0, all(0)), ""},
		"scaling to zero": {deploymentWith(0, all(2)), "old"},
		"no pod is left":  {deploymentWith(2, all(0)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := desiredStatus(before, observation{deployment: test.deployment})
			NewWithT(t).Expect(status.Greeting).To(Equal(test.want))
		})
	}
}

// The API server rejects an Event whose text is longer, and it is lost.
func TestNotesFitIntoEvents(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, text := range []string{"", "short", strings.Repeat("x", 1024)} {
		g.Expect(shorten(text, maxEventNote)).To(Equal(text))
	}
	for _, letter := range []string{"x", "ä", "…", "\U0001F42E"} {
		short := shorten(strings.Repeat(letter, 2000), maxEventNote)
		g.Expect(len(short)).To(And(BeNumerically("<=", 1024), BeNumerically(">", 1015)))
		g.Expect(utf8.ValidString(short)).To(BeTrue())
		g.Expect(short).To(And(HavePrefix(letter), HaveSuffix("…")))
	}
	recorder := events.NewFakeRecorder(1)
	rejected := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonApplyFailed, Message: strings.Repeat("no ", 1000)}
	lolcow := &v1alpha1.Lolcow{Status: v1alpha1.LolcowStatus{Conditions: []metav1.Condition{rejected}}}
	announce(t.Context(), recorder, lolcow, transitions(v1alpha1.LolcowStatus{}, lolcow.Status))
	g.Expect(<-recorder.Events).To(HaveLen(len("Warning ApplyFailed ") + 1024))
}

// The status is written by the operator only, but nothing keeps others from it.
func TestRemovedConditionIsWrittenAgain(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	lolcow := f.create("cow", v1alpha1.LolcowSpec{})
	lolcow.Status = v1alpha1.LolcowStatus{}
	f.Expect(f.client.Status().Update(f.ctx, lolcow)).To(Succeed())
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// During a rollout the pods of the old template are there too. What they fail of is not the new spec's.
func TestPodOfTheOldTemplateIsPassedOver(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	deployment := deploymentWith(1, all(0))
	pod := func(name, greeting, message string) corev1.Pod {
		pod := unpulled(name, "ErrImagePull", message)
		pod.Spec.Containers = []corev1.Container{{Name: containerName, Args: []string{"--", greeting}}}
		return pod
	}
	old, present := pod("cow-1", "Baa", "the old"), pod("cow-2", "Moo", "the new")
	g.Expect(readyCondition(observation{deployment: deployment, pods: []corev1.Pod{old, present}}).Message).To(ContainSubstring("the new"))
	present.Status.ContainerStatuses = nil
	g.Expect(readyCondition(observation{deployment: deployment, pods: []corev1.Pod{old, present}}).Reason).To(Equal(v1alpha1.ReasonRollingOut))
	g.Expect(readyCondition(observation{deployment: deployment, pods: []corev1.Pod{old}}).Reason).To(Equal(v1alpha1.ReasonImageNotPulled),
		"admission may change what pods run: then none is of the template")
}

// An admission webhook may put more into the arguments than the API accepts in a status, and no status was written at all.
func TestLongServedGreetingIsCut(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	deployment := deploymentWith(1, all(1))
	for greeting, want := range map[string]string{
		strings.Repeat("ä", 1024): strings.Repeat("ä", 1024),
		strings.Repeat("ä", 1025): strings.Repeat("ä", 1023) + "…",
	} {
		deployment.Spec.Template.Spec.Containers[1].Args = []string{"--", greeting}
		g.Expect(servedGreeting(deployment)).To(Equal(want))
	}
}
