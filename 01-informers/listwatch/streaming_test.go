package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// A streamed list begins with what there is now, so no version is too old for it.
func TestStreamedListIsNeverTooOld(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	client, err := dynamic.NewForConfig(o.Config)
	g.Expect(err).NotTo(HaveOccurred())
	foos := client.Resource(v1alpha1.GroupVersion.WithResource("foos")).Namespace(o.Namespace)
	options := streamed
	options.ResourceVersion = "1"
	w, err := foos.Watch(t.Context(), options)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Stop)
	saw(t, w, "BOOKMARK")
}

func TestStreamedListEndsWithItsBookmark(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	version := o.version(t)
	w := o.watching(t, streamed)
	list := saw(t, w, "ADDED a", "ADDED b", "ADDED c", "BOOKMARK")
	g.Expect(list[3].initialEventsEnd).To(BeTrue())
	g.Expect(number(t, list[3])).To(BeNumerically(">=", number(t, event{version: version})))

	g.Expect(o.CreatePods(t.Context(), "d")).To(Succeed())
	saw(t, w, "ADDED d")
	g.Expect(o.requests.Take()).To(HaveLen(2), "the list for the version, and one watch")
}

// From a version on, it still begins with everything: it is a list, "not older than" that version.
func TestStreamedListFromAVersionIsAWholeList(t *testing.T) {
	t.Parallel()
	o, _ := world(t)
	options := streamed
	options.ResourceVersion = o.version(t)
	saw(t, o.watching(t, options), "ADDED a", "ADDED b", "ADDED c", "BOOKMARK")
}

func TestStreamedListWithoutBookmarksDoesNotSayWhereItEnds(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	options := streamed
	options.AllowWatchBookmarks = false
	w := o.watching(t, options)
	saw(t, w, "ADDED a", "ADDED b", "ADDED c")
	g.Expect(o.CreatePods(t.Context(), "d")).To(Succeed())
	saw(t, w, "ADDED d")
}

func TestStreamedListNeedsResourceVersionMatch(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	_, err := o.pods.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")))
}
