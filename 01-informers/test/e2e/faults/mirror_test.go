package faults

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/testserver"
	"example.com/workbook/shared/faults/wire"
)

// mirror is the store of a reflector, and the ConfigMaps of its namespace.
type mirror struct {
	Gomega
	t         *testing.T
	proxy     *wire.Proxy
	format    string
	namespace string
	direct    kubernetes.Interface
	store     cache.Store
}

func newMirror(t *testing.T, format string, configMaps int) *mirror {
	t.Helper()
	m := &mirror{
		Gomega: NewWithT(t), t: t, format: format,
		proxy:     newProxy(t),
		namespace: testserver.Namespace(t),
		direct:    testserver.Client(t),
		store:     cache.NewStore(cache.MetaNamespaceKeyFunc),
	}
	for n := range configMaps {
		m.create(fmt.Sprint("c", n))
	}
	return m
}

func (m *mirror) create(name string) {
	_, err := m.direct.CoreV1().ConfigMaps(m.namespace).Create(m.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	m.Expect(err).NotTo(HaveOccurred())
}

// change creates, updates and deletes ConfigMaps, not through the proxy.
func (m *mirror) change() {
	configMaps := m.direct.CoreV1().ConfigMaps(m.namespace)
	for n := range 3 {
		m.create(fmt.Sprint("later", n))
	}
	m.Expect(configMaps.Delete(m.t.Context(), "later0", metav1.DeleteOptions{})).To(Succeed())
	later, err := configMaps.Get(m.t.Context(), "later1", metav1.GetOptions{})
	m.Expect(err).NotTo(HaveOccurred())
	later.Data = map[string]string{"changed": "yes"}
	_, err = configMaps.Update(m.t.Context(), later, metav1.UpdateOptions{})
	m.Expect(err).NotTo(HaveOccurred())
}

// inject makes watches of ConfigMaps fail.
func (m *mirror) inject(rule wire.Rule) *wire.Injection {
	rule.Verb, rule.Resource = "watch", "configmaps"
	return m.proxy.Inject(rule)
}

// start runs a reflector until the end of the test. The last wrapper is the outermost.
func (m *mirror) start(wrappers ...transport.WrapperFunc) {
	config := m.proxy.Config()
	config.ContentType = m.format
	for _, wrapper := range wrappers {
		config.Wrap(wrapper)
	}
	source := handmade.ListWatch(clientFor(m.t, config).CoreV1().ConfigMaps(m.namespace))
	reflector := cache.NewReflectorWithOptions(source, &corev1.ConfigMap{}, m.store, cache.ReflectorOptions{})
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		reflector.RunWithContext(ctx)
	}()
	m.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// mirrored reports whether the store has the same objects as the API server, at the same resourceVersions.
func (m *mirror) mirrored() bool {
	list, err := m.direct.CoreV1().ConfigMaps(m.namespace).List(m.t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != len(m.store.ListKeys()) {
		return false
	}
	for i := range list.Items {
		stored, ok, err := m.store.Get(&list.Items[i])
		if err != nil || !ok || stored.(*corev1.ConfigMap).ResourceVersion != list.Items[i].ResourceVersion {
			return false
		}
	}
	return true
}

func (m *mirror) expectMirrored() {
	m.Eventually(m.mirrored).WithPolling(interval).Should(BeTrue())
}
