package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A streaming list begins with the current state, so no resourceVersion is too old for it.
func TestStreamingListIsNeverTooOld(t *testing.T) {
	t.Parallel()
	o, g := withPods(t)
	options := streaming
	options.ResourceVersion = "1"
	w, err := foos(t, o).Watch(t.Context(), options)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Stop)
	expectEvents(t, w, "BOOKMARK")
}

// It still begins with all objects, in a state that is not older than the given resourceVersion.
func TestStreamingListFromAVersionIsComplete(t *testing.T) {
	t.Parallel()
	o, g := withPods(t)
	options := streaming
	options.ResourceVersion = o.resourceVersion(t)
	list := expectEvents(t, o.watch(t, options), "ADDED a, ADDED b, ADDED c, BOOKMARK")
	g.Expect(number(t, list[3].GetResourceVersion())).To(BeNumerically(">=", number(t, options.ResourceVersion)))
}

func TestStreamingListWithoutBookmarksDoesNotMarkItsEnd(t *testing.T) {
	t.Parallel()
	o, _ := withPods(t)
	options := streaming
	options.AllowWatchBookmarks = false
	w := o.watch(t, options)
	expectEvents(t, w, "ADDED a, ADDED b, ADDED c")
	o.CreatePods(t.Context(), "d")
	expectEvents(t, w, "ADDED d")
}

func TestStreamingListRequiresResourceVersionMatch(t *testing.T) {
	t.Parallel()
	o, g := withPods(t)
	_, err := o.pods.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")))
}
