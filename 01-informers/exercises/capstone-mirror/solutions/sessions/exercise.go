package mirror

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Run keeps a copy of the source in each namespace that targets selects, until ctx ends. At each value from verify it compares all of
// them with what the API server has.
func Run(ctx context.Context, client kubernetes.Interface, source types.NamespacedName, targets labels.Selector, verify <-chan time.Time) error {
	for ctx.Err() == nil {
		m := &mirror{client: client, source: source, queue: newQueue()}
		m.session(ctx, targets, verify)
	}
	return nil
}

// mirror is one session: it knows what its own lists and watches have brought.
type mirror struct {
	client                      kubernetes.Interface
	source                      types.NamespacedName
	queue                       workqueue.TypedRateLimitingInterface[string]
	sources, namespaces, copies cache.SharedIndexInformer
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 10*time.Second))
}

// session works until ctx ends or a value comes from verify. Nothing of it runs on when it returns.
func (m *mirror) session(ctx context.Context, targets labels.Selector, verify <-chan time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		m.queue.ShutDown()
		running.Wait()
	}()
	m.watch(targets)
	for _, informer := range []cache.SharedIndexInformer{m.sources, m.namespaces, m.copies} {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Go(func() {
		// Before all lists are there, a namespace seems to lack its copy, and a copy its source.
		if cache.WaitForCacheSync(ctx.Done(), m.sources.HasSynced, m.namespaces.HasSynced, m.copies.HasSynced) {
			m.work(ctx)
		}
	})
	select {
	case <-ctx.Done():
	case <-verify:
	}
}

func (m *mirror) work(ctx context.Context) {
	for {
		namespace, shutDown := m.queue.Get()
		if shutDown {
			return
		}
		if err := m.reconcile(ctx, namespace); err != nil {
			m.queue.AddRateLimited(namespace)
		} else {
			m.queue.Forget(namespace)
		}
		m.queue.Done(namespace)
	}
}

// wanted is the copy that the namespace should have, or nil.
func (m *mirror) wanted(namespace string) *corev1.Secret {
	source, found, err := m.sources.GetStore().GetByKey(m.source.String())
	if err != nil || !found || namespace == m.source.Namespace {
		return nil
	}
	if _, selected, err := m.namespaces.GetStore().GetByKey(namespace); err != nil || !selected {
		return nil
	}
	return m.copyOf(source.(*corev1.Secret), namespace)
}

// terminating says whether the namespace is being deleted.
func (m *mirror) terminating(namespace string) bool {
	object, found, err := m.namespaces.GetStore().GetByKey(namespace)
	return err == nil && found && object.(*corev1.Namespace).DeletionTimestamp != nil
}

// current is the copy that the namespace has, or nil.
func (m *mirror) current(namespace string) *corev1.Secret {
	object, found, err := m.copies.GetStore().GetByKey(namespace + "/" + m.source.Name)
	if err != nil || !found || !m.isCopy(object.(*corev1.Secret)) {
		return nil
	}
	return object.(*corev1.Secret)
}
