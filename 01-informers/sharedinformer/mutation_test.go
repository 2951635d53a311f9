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
	// detectorVariable is read by client-go once, when the process starts.
	detectorVariable = "KUBE_CACHE_MUTATION_DETECTOR"
	mutateVariable   = "WORKBOOK_MUTATE_THE_CACHE"
)

// TestTheMutationDetector runs TestMutateTheCache in processes of their own, without the detector and with it, as the reader
// of chapter 08 does.
func TestTheMutationDetector(t *testing.T) {
	g := NewWithT(t)
	run := func(detector string) (string, error) {
		test := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestMutateTheCache$")
		test.Env = append(os.Environ(), mutateVariable+"=1", detectorVariable+"="+detector)
		output, err := test.CombinedOutput()
		return string(output), err
	}
	const lister = `the lister has "mutated", the server has "1"`
	output, err := run("false")
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(ContainSubstring(lister))
	output, err = run("true")
	g.Expect(err).To(HaveOccurred(), output)
	g.Expect(output).To(And(ContainSubstring(lister), ContainSubstring("ALTERED!"),
		ContainSubstring("panic: cache *v1.ConfigMap modified")))
}

// TestMutateTheCache modifies the argument of a handler. With the mutation detector that ends the process.
func TestMutateTheCache(t *testing.T) {
	if os.Getenv(mutateVariable) == "" {
		t.Skip("TestTheMutationDetector and chapter 08 run it, in a process of its own")
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
