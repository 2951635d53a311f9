package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/shared/cluster"
)

// variant is a way to keep the same pods in a cache.
type variant struct {
	name string
	// transform is cache.TransformFunc: what is kept of each object.
	transform cache.TransformFunc
	// informer makes the informer on pods of one namespace.
	informer func(config *rest.Config, namespace string, transform cache.TransformFunc) (cache.SharedIndexInformer, error)
}

// variants: the first is what the others are compared with.
var variants = []variant{
	{"typed", nil, typedInformer},
	{"typed, over JSON", nil, jsonInformer},
	{"typed, managedFields dropped", dropManagedFields, typedInformer},
	{"typed, reduced to what is read", reduce, typedInformer},
	{"metadata only", nil, metadataInformer},
	{"metadata, managedFields dropped", dropManagedFields, metadataInformer},
	{"unstructured", nil, unstructuredInformer},
}

func typedInformer(config *rest.Config, namespace string, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return jsonInformer(config, namespace, transform)
}

// jsonInformer has the default encoding.
func jsonInformer(config *rest.Config, namespace string, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace), informers.WithTransform(transform))
	return factory.Core().V1().Pods().Informer(), nil
}

func metadataInformer(config *rest.Config, namespace string, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), namespace, 0, cache.Indexers{}, nil).Informer()
	return informer, informer.SetTransform(transform)
}

func unstructuredInformer(config *rest.Config, namespace string, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), namespace, 0, cache.Indexers{}, nil).Informer()
	return informer, informer.SetTransform(transform)
}

// dropManagedFields removes what few controllers read.
func dropManagedFields(object any) (any, error) {
	accessor, err := apimeta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	return object, nil
}

// reduce keeps of a pod what a controller that counts ready pods of an app would read.
func reduce(object any) (any, error) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase,
			Conditions: slices.Clone(slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type != corev1.PodReady
			})),
		},
	}, nil
}

// measured is the result of the process for one variant.
type measured struct {
	Sync    time.Duration // from the start until all objects are in the cache
	Heap    uint64        // bytes that the cache added
	Objects int
}

// childVariable has the variant of a process that the benchmark starts.
const childVariable = "BENCH_VARIANT"

// measureVariants runs each variant in processes of their own, a few times in turn. It returns the shortest time, because other
// processes of the machine only make it longer, and the median heap.
func measureVariants(ctx context.Context, c cluster.Cluster, namespace string, times int) ([]measured, error) {
	all := make([][]measured, len(variants))
	for range times {
		for i, v := range variants {
			m, err := runChild(ctx, v.name, c, namespace)
			if err != nil {
				return nil, fmt.Errorf("measuring %q: %w", v.name, err)
			}
			all[i] = append(all[i], m)
		}
	}
	out := make([]measured, len(variants))
	for i, runs := range all {
		out[i] = runs[0]
		out[i].Sync = slices.MinFunc(runs, func(a, b measured) int { return int(a.Sync - b.Sync) }).Sync
		slices.SortFunc(runs, func(a, b measured) int { return int(a.Heap) - int(b.Heap) })
		out[i].Heap = runs[len(runs)/2].Heap
	}
	return out, nil
}

func runChild(ctx context.Context, name string, c cluster.Cluster, namespace string) (m measured, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name, "KUBECONFIG="+c.Kubeconfig(), "BENCH_CONTEXT="+c.Context(), "BENCH_NAMESPACE="+namespace)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// child is the process for one variant: it prints what it measured as JSON.
func child(name string) error {
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
	if i < 0 {
		return fmt.Errorf("there is no variant %q", name)
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: os.Getenv("KUBECONFIG")}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: os.Getenv("BENCH_CONTEXT")}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	informer, err := variants[i].informer(config, os.Getenv("BENCH_NAMESPACE"), variants[i].transform)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	before := heap()
	started := time.Now()
	go informer.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return fmt.Errorf("the cache was not filled within %s", limit)
	}
	m := measured{Sync: time.Since(started), Objects: len(informer.GetStore().ListKeys())}
	m.Heap = heap() - before
	runtime.KeepAlive(informer)
	return json.NewEncoder(os.Stdout).Encode(m)
}

// heap is what is in use once all garbage is collected: twice, because what has a finalizer or is in a
// sync.Pool survives the first collection.
func heap() uint64 {
	var stats runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
