package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
)

// patience is how long anything here may take.
const patience = 20 * time.Second

// makePods makes so many pods of each app, named APP-0 and so on, that no scheduler takes.
func makePods(ctx context.Context, client kubernetes.Interface, namespace string, counts map[string]int) error {
	for _, app := range slices.Sorted(maps.Keys(counts)) {
		for i := range counts[app] {
			name := fmt.Sprintf("%s-%d", app, i)
			if err := makePod(ctx, client, namespace, name, app); err != nil {
				return fmt.Errorf("making pod %s: %w", name, err)
			}
		}
	}
	return nil
}

// makePod tries again while it is forbidden: where ServiceAccounts are required, a new namespace takes a
// moment to get its own.
func makePod(ctx context.Context, client kubernetes.Interface, namespace, name, app string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: app, Image: "example.com/none"}},
		},
	}
	var refused error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, refused = client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(refused) {
			return false, nil
		}
		return true, refused
	})
	if refused != nil {
		return refused
	}
	return err
}

// informer is a factory with one informer, and the lister that reads it.
type informer struct {
	factory informers.SharedInformerFactory
	lister  listerscorev1.PodLister
	cancel  context.CancelFunc
}

// newInformer is for the pods of one namespace. To ask for the lister is what makes the informer.
func newInformer(client kubernetes.Interface, namespace string) *informer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	return &informer{factory: factory, lister: factory.Core().V1().Pods().Lister(), cancel: func() {}}
}

// start returns when the store has what the server had.
func (i *informer) start(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	i.cancel = cancel
	i.factory.StartWithContext(running)
	waiting, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := i.factory.WaitForCacheSyncWithContext(waiting).AsError(); err != nil {
		i.stop()
		return fmt.Errorf("waiting for the cache: %w", err)
	}
	return nil
}

// stop ends the watch and returns when it has ended. The store stays as it was.
func (i *informer) stop() {
	i.cancel()
	i.factory.Shutdown()
}

// waitFor returns when the lister has the pod.
func (i *informer) waitFor(ctx context.Context, namespace, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, err := i.lister.Pods(namespace).Get(name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for pod %s in the cache: %w", name, err)
	}
	return nil
}
