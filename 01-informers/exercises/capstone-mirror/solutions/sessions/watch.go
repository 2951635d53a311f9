package mirror

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watch makes the informers. Whatever they bring, the key is that of a namespace.
func (m *mirror) watch(targets labels.Selector) {
	named := fields.OneTermEqualSelector("metadata.name", m.source.Name).String()
	m.sources = m.factory(m.source.Namespace, func(o *metav1.ListOptions) {
		o.FieldSelector = named
	}).Core().V1().Secrets().Informer()
	m.copies = m.factory(metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.FieldSelector, o.LabelSelector = named, copyLabel+"=true"
	}).Core().V1().Secrets().Informer()
	m.namespaces = m.factory(metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector = targets.String()
	}).Core().V1().Namespaces().Informer()

	handle(m.sources, func(any) { m.addAll() })
	handle(m.copies, func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			m.queue.Add(secret.Namespace)
		}
	})
	handle(m.namespaces, func(object any) {
		if namespace, ok := object.(*corev1.Namespace); ok {
			m.queue.Add(namespace.Name)
		}
	})
}

func (m *mirror) factory(namespace string, tweak func(*metav1.ListOptions)) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
}

// handle calls f with each object that has changed, or is gone.
func handle(informer cache.SharedIndexInformer, f func(object any)) {
	// It fails only for an informer that has ended.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f,
		UpdateFunc: func(_, object any) { f(object) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			f(object)
		},
	})
}

// addAll adds each namespace that has a copy, or may need one.
func (m *mirror) addAll() {
	for _, name := range m.namespaces.GetStore().ListKeys() {
		m.queue.Add(name)
	}
	for _, object := range m.copies.GetStore().List() {
		m.queue.Add(object.(*corev1.Secret).Namespace)
	}
}
