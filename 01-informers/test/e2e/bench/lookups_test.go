package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const appIndex = "app"

// lookup is a way to find something in the cache.
type lookup struct {
	name string
	// found is how many objects it returned, and perSecond how often it can be done, by one goroutine.
	found     int
	perSecond float64
}

// measureLookups puts the pods into two stores, one with an index of apps and one without, and finds the pods of one app in each.
// The last look-up is by key, which needs no index.
func measureLookups(ctx context.Context, client kubernetes.Interface, namespace string) ([]lookup, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	byApp := cache.IndexFunc(func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Labels[appLabel]}, nil
	})
	indexed := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{appIndex: byApp})
	plain := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range pods.Items {
		if err := errors.Join(indexed.Add(&pods.Items[i]), plain.Add(&pods.Items[i])); err != nil {
			return nil, fmt.Errorf("filling a store: %w", err)
		}
	}
	middle := app(len(pods.Items) / podsPerApp / 2)
	selector := labels.SelectorFromSet(labels.Set{appLabel: middle})
	lister := corelisters.NewPodLister(plain).Pods(namespace)
	key := namespace + "/" + pods.Items[0].Name

	var out []lookup
	for _, way := range []struct {
		name string
		do   func() (int, error)
	}{
		{"no index: lister, label selector", func() (int, error) {
			found, err := lister.List(selector)
			return len(found), err
		}},
		{"index of one's own: ByIndex", func() (int, error) {
			found, err := indexed.ByIndex(appIndex, middle)
			return len(found), err
		}},
		{"one object by its key: GetByKey", func() (int, error) {
			_, exists, err := plain.GetByKey(key)
			if !exists {
				return 0, err
			}
			return 1, err
		}},
	} {
		l, err := measureLookup(way.name, way.do)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// measureLookup does it for two seconds.
func measureLookup(name string, do func() (int, error)) (lookup, error) {
	const whole = 2 * time.Second
	l := lookup{name: name}
	times := 0
	started := time.Now()
	for {
		// The clock is not read each time: that would take longer than the fastest look-up.
		for range 100 {
			found, err := do()
			if err != nil {
				return l, fmt.Errorf("measuring %q: %w", name, err)
			}
			l.found = found
		}
		times += 100
		if took := time.Since(started); took > whole {
			l.perSecond = float64(times) / took.Seconds()
			return l, nil
		}
	}
}
