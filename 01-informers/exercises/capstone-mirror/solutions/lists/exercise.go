package mirror

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Run keeps a copy of the source in each namespace that targets selects, until ctx ends. At each value from verify it compares all of
// them with what the API server has.
func Run(ctx context.Context, client kubernetes.Interface, source types.NamespacedName, targets labels.Selector, verify <-chan time.Time) error {
	m := &mirror{client: client, source: source, targets: targets}
	happened, stop := m.watch(ctx)
	defer stop()
	pauses := newPauses()
	for {
		var again <-chan time.Time
		if err := m.sync(ctx); err != nil {
			again = time.After(pauses.Step())
		} else {
			pauses = newPauses()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-happened:
		case <-verify:
		case <-again:
		}
	}
}

func newPauses() *wait.Backoff {
	return &wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 12, Cap: 10 * time.Second}
}

type mirror struct {
	client  kubernetes.Interface
	source  types.NamespacedName
	targets labels.Selector
}

// watch returns a channel that has a value after anything has changed, and a function that waits for the end of the watches.
func (m *mirror) watch(ctx context.Context) (happened <-chan struct{}, stop func()) {
	channel := make(chan struct{}, 1)
	note := func(any) {
		select {
		case channel <- struct{}{}:
		default: // it is noted already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }, DeleteFunc: note}
	named := fields.OneTermEqualSelector("metadata.name", m.source.Name).String()
	factories := []informers.SharedInformerFactory{
		m.factory(m.source.Namespace, func(o *metav1.ListOptions) { o.FieldSelector = named }),
		m.factory(metav1.NamespaceAll, func(o *metav1.ListOptions) { o.FieldSelector, o.LabelSelector = named, copyLabel+"=true" }),
		m.factory(metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = m.targets.String() }),
	}
	for i, factory := range factories {
		informer := factory.Core().V1().Secrets().Informer
		if i == 2 {
			informer = factory.Core().V1().Namespaces().Informer
		}
		// It fails only for an informer that has ended.
		_, _ = informer().AddEventHandler(handler)
		factory.Start(ctx.Done())
	}
	return channel, func() {
		for _, factory := range factories {
			factory.Shutdown()
		}
	}
}

func (m *mirror) factory(namespace string, tweak func(*metav1.ListOptions)) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
}
