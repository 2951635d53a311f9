package operator

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// managerPod is a pod of the operator that is ready.
func managerPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teapot-system", Name: name, Labels: map[string]string{"app": "manager"}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "sidecar", ContainerID: "containerd://sidecar"},
				{Name: "manager", ContainerID: "containerd://" + name},
			},
		},
	}
}

func TestDeployedScales(t *testing.T) {
	m := testManifest(t)
	clients := fake.NewClientset(m.deployment, managerPod("a"), managerPod("b"))
	d := &Deployed{clients: clients, manifest: m, replicas: 1}
	if err := d.Scale(t.Context(), 0); err == nil {
		t.Error("it was scaled to 0, which is Stop's to do")
	}
	if err := d.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	live, err := clients.AppsV1().Deployments("teapot-system").Get(t.Context(), m.deployment.Name, metav1.GetOptions{})
	if err != nil || *live.Spec.Replicas != 2 {
		t.Errorf("got %v, %v, want 2 replicas", live.Spec.Replicas, err)
	}
}

func TestDeployedIsComplete(t *testing.T) {
	d := &Deployed{manifest: testManifest(t), replicas: 2}
	starting := managerPod("b")
	starting.Status.Conditions = nil
	for what, test := range map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"one of two":                {[]corev1.Pod{*managerPod("a")}, false},
		"two, one of them starting": {[]corev1.Pod{*managerPod("a"), *starting}, false},
		"two":                       {[]corev1.Pod{*managerPod("a"), *managerPod("b")}, true},
		"three, one to go":          {[]corev1.Pod{*managerPod("a"), *managerPod("b"), *managerPod("c")}, false},
	} {
		if got := d.complete(test.pods); got != test.want {
			t.Errorf("%s: got %t", what, got)
		}
	}
	if got := d.managerIn(*managerPod("a")).ContainerID; got != "containerd://a" {
		t.Errorf("got %s, want the manager's container, not the sidecar's", got)
	}
}

func TestDeployedKnowsTheLeader(t *testing.T) {
	d := &Deployed{manifest: testManifest(t)}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := managerPod("teapot-1")
	pod.Status.ContainerStatuses[1].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}
	for what, test := range map[string]struct {
		identity string
		renewed  time.Duration // after the start
		want     bool
	}{
		"its own": {"teapot-1_x", 2 * time.Second, true},
		"of the process that was killed before it": {"teapot-1_x", -time.Second, false},
		"of the same second, which may be either":  {"teapot-1_x", 900 * time.Millisecond, false},
		"of another pod":              {"teapot-2_x", time.Minute, false},
		"of a pod with a longer name": {"teapot-1-2_x", time.Minute, false},
	} {
		renewed := metav1.NewMicroTime(start.Add(test.renewed))
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &test.identity, RenewTime: &renewed}}
		if got := d.holds(*pod, lease); got != test.want {
			t.Errorf("a lease %s: got %t", what, got)
		}
	}
}
