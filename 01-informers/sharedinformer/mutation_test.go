package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// longest bounds how long a test waits for an informer to resume after an interruption. Its backoff is about a
// second; a busy machine takes longer.
const longest = 20 * time.Second

const (
	// detectorVariable is read once, when the process starts. So each test needs a process.
	detectorVariable = "KUBE_CACHE_MUTATION_DETECTOR"
	mutateVariable   = "WORKBOOK_MUTATE_THE_CACHE"
)

func TestTheMutationDetectorEndsTheProcess(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := mutate(t, "true")
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("panic: cache *v1.ConfigMap modified"))
	g.Expect(out).To(ContainSubstring("CACHE *v1.ConfigMap[0] ALTERED!"), "it reports what was modified, but not by which code")
}

func TestWithoutTheDetectorAModifiedObjectIsNotReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := mutate(t, "false")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(`the lister has "mutated", the server has "1"`))
}

// mutate runs TestMutateTheCache in a process of its own.
func mutate(t *testing.T, detect string) (string, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutateTheCache$", "-test.v")
	child.Env = append(os.Environ(), detectorVariable+"="+detect, mutateVariable+"=1")
	out, err := child.CombinedOutput()
	return string(out), err
}

// TestMutateTheCache is the test that mutate runs: a handler modifies its argument.
func TestMutateTheCache(t *testing.T) {
	if os.Getenv(mutateVariable) == "" {
		t.Skip("runs in a process of its own")
	}
	g := NewWithT(t)
	client := fake.NewClientset(inDefault("a"))
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	configMaps := coreinformers.ToTypedConfigMapInformer(factory.Core().V1().ConfigMaps())
	registration, err := configMaps.TypedInformer().AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		AddFunc: func(object *corev1.ConfigMap) { object.Data["value"] = "mutated" },
	})
	g.Expect(err).NotTo(HaveOccurred())
	factory.StartWithContext(ctx)
	g.Expect(cache.WaitFor(ctx, "", registration.HasSyncedChecker())).To(BeTrue())

	cached, err := configMaps.Lister().ConfigMaps(metav1.NamespaceDefault).Get("a")
	g.Expect(err).NotTo(HaveOccurred())
	stored, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("the lister has %q, the server has %q", cached.Data["value"], stored.Data["value"])
	if os.Getenv(detectorVariable) == "true" {
		// The detector compares once a second. The panic ends the process before this wait does.
		<-time.After(longest)
	}
}
