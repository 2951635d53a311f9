package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// A panic in an informer is not recovered (util/runtime.HandleCrash panics again). The test runs this binary
// again, with this variable, in a process of its own.
const crashEnv = "INDEXER_TEST_CRASH"

func TestAPanicOfAnIndexFunctionEndsTheProcess(t *testing.T) {
	if os.Getenv(crashEnv) != "" {
		runInformerThatPanics(t)
		return
	}
	t.Parallel()
	g := NewWithT(t)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPanicOfAnIndexFunctionEndsTheProcess$")
	again.Env = append(os.Environ(), crashEnv+"=1")
	out, err := again.CombinedOutput()
	g.Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}), "the process must not succeed")
	g.Expect(string(out)).To(ContainSubstring("panic: unable to calculate an index entry for key"))
}

func runInformerThatPanics(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(pod("shop", "web-0")), 0)
	informer := cache.NewTypedSharedIndexInformer[*corev1.Pod](factory.Core().V1().Pods().Informer())
	if err := informer.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{byOwner: ownerOrError}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	<-ctx.Done() // The process panics before.
}
