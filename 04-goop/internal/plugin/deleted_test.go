package plugin

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// An API server without streaming lists (WatchList) responds to the first list from its watch cache, which may lack the
// new Goop.
func TestRunFindsTheGoopThoughTheWatchCacheLacksIt(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.isStale()
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "hello\n", 0)
		f.end(goop, 1)
	})
	r := f.run("run", "--", "hello")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.err).To(BeEmpty())
}

// A cleanup or a finalizer of another controller may keep a Goop for a long time. The output of its workers can be read
// while their pods exist, and the command does not wait.
func TestLogsOfAGoopThatIsBeingDeleted(t *testing.T) {
	for _, args := range [][]string{{"logs", "hello"}, {"logs", "-f", "hello"}} {
		g, f := NewWithT(t), newFake(t)
		f.goop("hello", "true")
		f.ends("hello", "n1", 0, "one\n", 0)
		f.worker("hello", "n2", 0, text("so far"))
		f.update("hello", func(goop *v1alpha1.Goop) { goop.DeletionTimestamp = new(metav1.Now()) })
		r := f.run(args...)
		g.Expect(r.code).To(Equal(0), r.err)
		g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: one", "n2: so far", ""))
		g.Expect(r.err).To(Equal("goop: the Goop hello is being deleted: nothing is to come, and this is what is there\n"))
	}
}

// A session that missed its Goop deletes it.
func TestRunDeletesTheGoopThatOnlySeemsDeleted(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	flags := newFlags()
	flags.KubeConfig = &f.kubeconfig
	api, err := connect(flags, &buffer{}, false)
	g.Expect(err).NotTo(HaveOccurred())
	goop, err := api.goops.Create(context.Background(), &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = (&runFlags{}).end(context.Background(), api, goop, errDeleted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.has("there")).To(BeFalse())
}
