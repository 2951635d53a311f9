package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// sizes are the mean bytes of a pod.
type sizes struct{ protobuf, json, managedFields float64 }

func sizesOf(ctx context.Context, client kubernetes.Interface, namespace string) (s sizes, err error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return s, fmt.Errorf("listing pods: %w", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		whole, err := json.Marshal(pod)
		if err != nil {
			return s, fmt.Errorf("encoding a pod: %w", err)
		}
		s.protobuf += float64(pod.Size())
		s.json += float64(len(whole))
		pod.ManagedFields = nil
		without, err := json.Marshal(pod)
		if err != nil {
			return s, fmt.Errorf("encoding a pod: %w", err)
		}
		s.managedFields += float64(len(whole) - len(without))
	}
	n := float64(len(list.Items))
	return sizes{s.protobuf / n, s.json / n, s.managedFields / n}, nil
}

// report prints every figure beside its ratio to the first of its table.
func report(out io.Writer, s sizes, informers []measured, lookups []lookup, queues []queueRun) {
	fmt.Fprintf(out, "\n%d pods; each is %.1f kB as protobuf and %.1f kB as JSON, of which managedFields are %.1f kB\n",
		pods, s.protobuf/1e3, s.json/1e3, s.managedFields/1e3)

	fmt.Fprintf(out, "\n%-34s %12s %6s %16s %6s\n", "informer", "time to sync", "ratio", "heap per object", "ratio")
	for i, m := range informers {
		perObject := func(m measured) float64 { return float64(m.Heap) / float64(m.Objects) }
		fmt.Fprintf(out, "%-34s %10.2f s %6.2f %13.1f kB %6.2f\n", variants[i].name,
			m.Sync.Seconds(), m.Sync.Seconds()/informers[0].Sync.Seconds(), perObject(m)/1e3, perObject(m)/perObject(informers[0]))
	}

	fmt.Fprintf(out, "\n%-34s %10s %14s %10s\n", "look-up in the cache", "objects", "a second", "ratio")
	for _, l := range lookups {
		fmt.Fprintf(out, "%-34s %10d %14.0f %10.1f\n", l.name, l.found, l.perSecond, l.perSecond/lookups[0].perSecond)
	}

	fmt.Fprintf(out, "\n%-28s %8s %9s %9s %14s %14s %6s %13s\n", "work queue", "workers", "adds", "gets", "adds a second", "gets a second", "ratio", "adds per get")
	for i, q := range queues {
		first := queues[i-i%2] // each kind of run begins with one worker
		fmt.Fprintf(out, "%-28s %8d %9d %9d %14.0f %14.0f %6.2f %13.1f\n", q.name, q.workers, q.adds, q.gets,
			q.addsPerSecond(), q.getsPerSecond(), q.getsPerSecond()/first.getsPerSecond(), q.addsPerGet())
	}
}
