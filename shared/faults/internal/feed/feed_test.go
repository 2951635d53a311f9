package feed

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func configMap(name, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string]string{"data": data}}
}

// TestInformer: what is fed is in the store, transformed, and delivered to handlers, also to one that comes later.
func TestInformer(t *testing.T) {
	informer := NewInformer(cache.Indexers{}, func() []client.Object { return []client.Object{configMap("a", "1")} })
	if err := informer.SetTransform(func(in any) (any, error) {
		in.(*corev1.ConfigMap).Labels = map[string]string{"transformed": "yes"}
		return in, nil
	}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	handler := cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			one := object.(*corev1.ConfigMap)
			seen = append(seen, "add "+one.Name+one.Labels["transformed"]+map[bool]string{true: " at first"}[initial])
		},
		UpdateFunc: func(old, object any) {
			seen = append(seen, "update "+old.(*corev1.ConfigMap).Data["data"]+" to "+object.(*corev1.ConfigMap).Data["data"])
		},
		DeleteFunc: func(object any) {
			_, missed := object.(cache.DeletedFinalStateUnknown)
			seen = append(seen, "delete"+map[bool]string{true: " missed"}[missed])
		},
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	if !informer.HasSynced() {
		t.Fatal("it does not sync")
	}
	for _, one := range []*corev1.ConfigMap{configMap("a", "2"), configMap("b", "1")} {
		if err := informer.Set(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := informer.Delete(configMap("a", "2"), false); err != nil {
		t.Fatal(err)
	}
	if err := informer.Delete(configMap("b", "1"), true); err != nil {
		t.Fatal(err)
	}
	if err := informer.Delete(configMap("b", "1"), true); err != nil {
		t.Fatal(err)
	}
	want := []string{"add ayes at first", "update 1 to 2", "add byes", "delete", "delete missed"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if err := informer.Set(configMap("c", "1")); err != nil {
		t.Fatal(err)
	}
	seen = nil
	registered, err := informer.AddEventHandler(handler)
	if err != nil || !registered.HasSynced() || !slices.Equal(seen, []string{"add cyes at first"}) {
		t.Errorf("%q, %v", seen, err)
	}
}

// TestQueue: a key is handed out when it is asked for, once for many additions, and again if it was added meanwhile.
func TestQueue(t *testing.T) {
	now := time.Unix(0, 0)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	queue := NewQueue("test", limiter, func() time.Time { return now })
	a, b := key("a"), key("b")
	for _, one := range []reconcile.Request{b, a, b} {
		queue.Add(one)
	}
	queue.Sort()
	if got := queue.Ready(); !slices.Equal(got, []reconcile.Request{a, b}) {
		t.Fatalf("%v", got)
	}
	processed := make(chan reconcile.Request)
	go func() {
		for {
			one, down := queue.Get()
			if down {
				close(processed)
				return
			}
			queue.Add(one)
			queue.AddRateLimited(b)
			queue.AddAfter(b, time.Hour)
			queue.Done(one)
			processed <- one
		}
	}()
	<-queue.Parked()
	queue.Hand(a)
	if one := <-processed; one != a {
		t.Fatalf("%v", one)
	}
	<-queue.Processed()
	if got := queue.Ready(); !slices.Equal(got, []reconcile.Request{b, a}) {
		t.Errorf("%v: a was added while it was processed", got)
	}
	if timers := queue.Timers(); len(timers) != 1 || !timers[0].At.Equal(now.Add(time.Second)) {
		t.Errorf("%v: of two times the earlier counts", timers)
	}
	queue.Hand(b)
	<-processed
	<-queue.Processed()
	now = now.Add(time.Hour)
	queue.Fire()
	if len(queue.Timers()) != 0 || queue.Len() != 2 {
		t.Errorf("%v, %v", queue.Timers(), queue.Ready())
	}
	queue.ShutDown()
	if _, open := <-processed; open {
		t.Error("a worker gets a key from a queue that is shut down")
	}
}

func key(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}
