package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/internal/plan"
)

// A user deletes the DaemonSet of the work. Another one is created when the pods of the first no longer exist, also those
// that have no node yet: they could still get one.
func TestDaemonSetIsCreatedAgainAfterItsPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ scheduled, cached bool }{
		"that run": {true, true}, "without a node": {false, true}, "that the cache does not have yet": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.begin()
			daemonSet := f.daemonSets()["job-0"]
			pod := podOf(daemonSet, f.node("a"))
			if !test.scheduled {
				pod.Spec.NodeName = ""
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: nodeSelectorOf(plan.Round{Nodes: []string{f.node("a")}}),
				}}
			}
			f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())
			f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
			if !test.cached {
				f.withoutPods()
			}
			f.attempts(3)
			f.Expect(f.daemonSets()).To(BeEmpty())
			f.use()
			f.removePod(pod)
			f.reconciles(3)
			f.Expect(f.daemonSets()).To(HaveKey("job-0"))
		})
	}
}
