package controller

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

func manyNodes(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%05d.cluster.example.com", i)
	}
	return names
}

// cached is a reader that holds all objects of a large Goop, like the cache.
type cached struct {
	client.Client
	goop       *v1alpha1.Goop
	shards     []corev1.ConfigMap
	daemonSets []appsv1.DaemonSet
	nodes      []corev1.Node
	pods       []corev1.Pod
}

func (c *cached) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *v1alpha1.Goop:
		*object = *c.goop
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *appsv1.DaemonSetList:
		list.Items = c.daemonSets
	case *corev1.NodeList:
		list.Items = c.nodes
	case *corev1.PodList:
		list.Items = c.pods
	case *corev1.ConfigMapList:
		list.Items = c.shards
	}
	return nil
}

// big returns a reconciler for a Goop with some workers on each of many nodes. Half of them have finished.
func big(t *testing.T, nodes, rounds int) *GoopReconciler {
	t.Helper()
	goop := aGoop(func(s *v1alpha1.GoopSpec) { s.JobCount = new(int32(nodes * rounds)) })
	c := &cached{goop: goop}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	recorded := newRecord()
	recorded.Start(now)
	names := manyNodes(nodes)
	for _, name := range names {
		c.nodes = append(c.nodes, corev1.Node{})
		c.nodes[len(c.nodes)-1].Name = name
	}
	for round := range rounds {
		daemonSet := desiredRound(goop, plan.Round{Number: round, Nodes: slices.Clone(names)}, testImages)
		daemonSet.UID = types.UID(fmt.Sprint("round-", round))
		for i, name := range names {
			pod := podOf(daemonSet, name)
			if setWork(pod, isRunning); i%2 == 0 {
				setWork(pod, hasFinished(0, ""))
				recorded.Finish(record.Finish{Place: plan.Place{Node: name, Round: round}, Tries: 1})
			}
			c.pods = append(c.pods, *reducePod(pod))
		}
		c.daemonSets = append(c.daemonSets, *daemonSet)
	}
	for _, shard := range recorded.Changed() {
		configMap := desiredShard(goop, shard)
		configMap.UID = types.UID(configMap.Name)
		c.shards, goop.Status.RecordUIDs = append(c.shards, *configMap), append(goop.Status.RecordUIDs, configMap.Name)
	}
	return NewGoopReconciler(c, c, nil, testclock.NewFakeClock(now), testImages, false)
}

func goopOf(r *GoopReconciler) *v1alpha1.Goop { return r.Client.(gatedClient).Client.(*cached).goop }

// A reconciliation over 5,000 nodes takes milliseconds. There are four in a second while workers report.
func TestReconciliationOverFiveThousandNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rounds int
		most   time.Duration
	}{"5,000 workers": {1, 250 * time.Millisecond}, "50,000 workers": {10, 2500 * time.Millisecond}} {
		g := NewWithT(t)
		r := big(t, 5000, test.rounds)
		fastest := time.Hour
		for range 5 {
			start := time.Now()
			seen, err := r.observe(t.Context(), goopOf(r))
			g.Expect(err).NotTo(HaveOccurred())
			lose, gain, missing := changes(seen)
			status := desiredStatus(seen)
			fastest = min(fastest, time.Since(start))
			g.Expect(len(lose) + len(gain) + len(missing)).To(BeZero())
			g.Expect(int(status.Running)).To(Equal(2500 * test.rounds))
			g.Expect(int(status.Succeeded)).To(Equal(2500 * test.rounds))
		}
		t.Logf("%s: %s a reconciliation", name, fastest)
		// The limit is ten times what it takes on an idle machine. Beside other tests it is not asserted.
		if os.Getenv("MEASURE") != "" {
			g.Expect(fastest).To(BeNumerically("<", test.most), name)
		}
	}
}
