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

func lines(g Gomega, mistake func(func(string)) error) []string {
	var lines []string
	g.Expect(mistake(func(line string) { lines = append(lines, line) })).To(Succeed())
	return lines
}

func TestAnIndexFunctionThatReturnsAnErrorMakesLaterWritesPanic(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(lines(g, breakByError)).To(Equal([]string{
		`Add panics: true: unable to calculate an index entry for key "shop/web-0" on index "by-owner": this Pod has no owner`,
		"the store has the object: true",
		"Delete panics: true",
		"Replace, which discards the old objects, panics: false",
		"Update with an object that has an owner panics: true",
		"the same Update again panics: false. The index returns for its owner: nothing",
	}))
}

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

func TestAnIndexFunctionOfAnotherTypePanics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(func() { _ = filled(g).Add(&corev1.Node{}) }).To(PanicWith(MatchError(ContainSubstring("is *v1.Node, not *v1.Pod"))))
}

func TestAModifiedObjectStaysIndexedUnderItsOldValue(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(lines(g, breakByMutation)).To(Equal([]string{
		"before:                            app=web  shop/web-0 (with the label web)",
		"                                   app=db   nothing",
		"its label modified to db:          app=web  shop/web-0 (with the label db)",
		"                                   app=db   nothing",
		"then updated from the server, db:  app=web  shop/web-0 (with the label db)",
		"                                   app=db   nothing",
		"then deleted:                      app=web  a nil, on which a type assertion panics",
		"                                   app=db   nothing",
	}))
}

func TestTheNamespaceIndexNeedsMetadata(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := cache.MetaNamespaceIndexFunc("a string")
	g.Expect(err).To(MatchError(ContainSubstring("object has no meta")))
}
