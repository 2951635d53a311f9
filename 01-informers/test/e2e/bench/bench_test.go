// Package bench measures informers and their parts: the time until 10,000 pods are in the cache and the bytes that they need
// there, look-ups, and the throughput of a work queue. It also measures both implementations of the operator: how many Foos a
// second they reconcile, beside a bare client that makes the same writes, and what they cost in steady state. `make stage-1
// bench` runs it on the embedded cluster. It asserts nothing, and prints all figures.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/bench"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/step"
)

const limit = 15 * time.Minute

var (
	// pods is how many there are.
	pods = bench.Number("BENCH_PODS", 10_000)
	// repeats is how often each informer and each queue is measured.
	repeats = bench.Number("BENCH_REPEATS", 5)
)

// TestMain runs the benchmark, or is one of the processes that it starts.
func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := child(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func BenchmarkInformers(b *testing.B) {
	// Not kind, also if there is an engine: there the nodes are on the same machine.
	b.Setenv("CLUSTER", string(cluster.KindEmbedded))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	unlock, err := cluster.Lock(ctx, os.Stdout, "", "01-informers bench")
	must(b, err)
	defer unlock()
	c, _, err := cluster.Ensure(ctx, os.Stdout, cluster.Options{})
	must(b, err)
	defer func() { must(b, c.Close(context.WithoutCancel(ctx))) }()
	config, err := c.RESTConfig()
	must(b, err)
	client, err := kubernetes.NewForConfig(config)
	must(b, err)

	namespace := ""
	defer func() { must(b, remove(context.WithoutCancel(ctx), client, namespace)) }()
	must(b, step.Run(ctx, os.Stdout, fmt.Sprintf("making %d pods that no node gets", pods), func(ctx context.Context) error {
		namespace, err = makePods(ctx, config, pods)
		return err
	}))
	sizes, err := sizesOf(ctx, client, namespace)
	must(b, err)
	var informers []measured
	must(b, step.Run(ctx, os.Stdout, fmt.Sprintf("measuring %d kinds of informer, %d times each", len(variants), repeats), func(ctx context.Context) error {
		informers, err = measureVariants(ctx, c, namespace, repeats)
		return err
	}))
	var lookups []lookup
	must(b, step.Run(ctx, os.Stdout, "measuring look-ups", func(ctx context.Context) error {
		lookups, err = measureLookups(ctx, client, namespace)
		return err
	}))
	var queues []queueRun
	must(b, step.Run(ctx, os.Stdout, "measuring the work queue", func(context.Context) error {
		queues = measureQueue(repeats)
		return nil
	}))
	report(os.Stdout, sizes, informers, lookups, queues)
	b.ReportMetric(0, "ns/op")
}

// remove deletes a namespace, with all that is in it, and waits until it is gone.
func remove(ctx context.Context, client kubernetes.Interface, namespace string) error {
	if namespace == "" {
		return nil
	}
	return step.Run(ctx, os.Stdout, "removing the pods", func(ctx context.Context) error {
		now := int64(0)
		err := errors.Join(
			client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}),
			client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}))
		if err != nil {
			return fmt.Errorf("removing namespace %s: %w", namespace, err)
		}
		return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
