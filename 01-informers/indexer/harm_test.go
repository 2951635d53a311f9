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

func told(g Gomega, breakIt func(func(string)) error) []string {
	var told []string
	g.Expect(breakIt(func(line string) { told = append(told, line) })).To(Succeed())
	return told
}

func TestAnIndexFunctionThatReturnsAnErrorPoisonsTheKey(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(told(g, breakByError)).To(Equal([]string{
		`Add panics: true: unable to calculate an index entry for key "shop/web-0" on index "by-owner": this pod has no owner`,
		"and yet the store has the object: true",
		"Delete panics: true",
		"Replace, which forgets the old objects, panics: false",
		"Update with an object that has an owner panics: true",
		"the same Update once more panics: false. The index finds by its owner: nothing",
	}))
}

// A panic inside an informer is not caught (util/runtime.HandleCrash panics again). The test is its own
// program: it runs itself once more, with this in the environment.
const crashEnv = "INDEXER_TEST_CRASH"

func TestAWrongIndexFunctionEndsTheProcess(t *testing.T) {
	if os.Getenv(crashEnv) != "" {
		runWrongInformer(t)
		return
	}
	t.Parallel()
	g := NewWithT(t)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAWrongIndexFunctionEndsTheProcess$")
	again.Env = append(os.Environ(), crashEnv+"=1")
	out, err := again.CombinedOutput()
	g.Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}), "it must not end well")
	g.Expect(string(out)).To(ContainSubstring("panic: unable to calculate an index entry for key"))
}

func runWrongInformer(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(pod("shop", "web-0")), 0)
	informer := cache.NewTypedSharedIndexInformer[*corev1.Pod](factory.Core().V1().Pods().Informer())
	if err := informer.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{byOwner: ownerOrError}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	<-ctx.Done() // the panic comes before
}

func TestAnIndexFunctionOfAnotherTypePanics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(func() { _ = newIndexer().Add(&corev1.Node{}) }).To(PanicWith(MatchError(ContainSubstring("is *v1.Node, not *v1.Pod"))))
}

func TestTheStoreHandsOutItsOwnPointer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	given := pod("shop", "web-0")
	indexer := filled(g, given)
	got, _, err := indexer.GetByKey("shop/web-0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeIdenticalTo(given))
	g.Expect(indexer.List()[0]).To(BeIdenticalTo(given))
}

func TestAnObjectChangedInPlaceIsFoundUnderItsOldValueForEver(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(told(g, breakByMutation)).To(Equal([]string{
		"as it should be:                   app=web  shop/web-0 (its label says web)",
		"                                   app=db   nothing",
		"its label changed in place to db:  app=web  shop/web-0 (its label says db)",
		"                                   app=db   nothing",
		"then updated by the server, db:    app=web  shop/web-0 (its label says db)",
		"                                   app=db   nothing",
		"then deleted:                      app=web  a nil that no type assertion survives",
		"                                   app=db   nothing",
	}))
}

func TestACopyMayBeChanged(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, pod("shop", "web-0", withApp("web")))
	got, _, err := indexer.GetByKey("shop/web-0")
	g.Expect(err).NotTo(HaveOccurred())
	got.(*corev1.Pod).DeepCopy().Labels["app"] = "db"
	g.Expect(indexer.Delete(got)).To(Succeed())
	g.Expect(indexer.ListIndexFuncValues(byApp)).To(BeEmpty())
}

// The namespace index has its own way to be wrong: an object that has no metadata.
func TestTheNamespaceIndexNeedsMetadata(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := cache.MetaNamespaceIndexFunc("a string")
	g.Expect(err).To(MatchError(ContainSubstring("object has no meta")))
}
