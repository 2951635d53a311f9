package controller

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// TestCrashAtEveryRequest runs two stories once without errors, once with every read failed the first time that it is
// sent, and then for each write of the controller: once failed before it is sent, and once after it took effect. The
// objects at the end are always the same, and no work has begun more often.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*goopTestEnv) storyEnd{"work": workStory, "cleanup": cleanupStoryOf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed, requests := runStory(t, story, crash{})
			if len(requests) < 50 {
				t.Fatalf("the story has only %d requests: it does not test what it should", len(requests))
			}
			t.Run("reads", func(t *testing.T) {
				t.Parallel()
				end, seen := runStory(t, story, crash{reads: true})
				g := NewWithT(t)
				g.Expect(len(seen)).To(BeNumerically(">", 2*len(requests)), "too few requests were repeated")
				g.Expect(end).To(Equal(undisturbed))
			})
			crashes := 0
			for n, what := range requests {
				if strings.HasPrefix(what, http.MethodGet) {
					continue
				}
				for _, after := range []bool{false, true} {
					// A random sample covers most of it.
					if testing.Short() && rand.IntN(4) > 0 {
						continue
					}
					crashes++
					t.Run(fmt.Sprintf("%d %s after=%t", n+1, what, after), func(t *testing.T) {
						t.Parallel()
						end, seen := runStory(t, story, crash{at: n + 1, after: after})
						g := NewWithT(t)
						g.Expect(seen[n]).To(Equal(what), "the crash was at another request")
						g.Expect(end).To(Equal(undisturbed))
					})
				}
			}
			t.Logf("%d requests, %d crashes at writes", len(requests), crashes)
		})
	}
}

// storyEnd is everything that exists after a story, without what differs between runs.
type storyEnd struct {
	status     v1alpha1.GoopStatus
	finished   map[plan.Place]bool
	placed     map[string]plan.Round
	pods       map[string]int
	finalizers []string
	gone       bool
}

// repeatReads answers reads from memory where nothing can have changed. Nodes of other tests come and go meanwhile, and
// do not count.
func (f *goopTestEnv) repeatReads() {
	f.config = withRepeatedReads(f.config)
	c, err := client.New(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	f.client = c
	f.use()
}

func runStory(t *testing.T, story func(*goopTestEnv) storyEnd, at crash) (storyEnd, []string) {
	t.Helper()
	f := newGoopTestEnv(t, "a", "b")
	f.repeatReads()
	f.requests.crash = at
	end := story(f)
	end.pods = f.pods
	// The names of nodes begin with the namespace.
	end.status.Failures = nil
	// The uids of the ConfigMaps differ between runs.
	for i := range end.status.RecordUIDs {
		end.status.RecordUIDs[i] = "uid"
	}
	for i := range end.status.Conditions {
		end.status.Conditions[i].LastTransitionTime = metav1.Time{}
		end.status.Conditions[i].Message = ""
	}
	end.status.StartTime, end.status.CompletionTime = nil, nil
	short := map[plan.Place]bool{}
	for place := range end.finished {
		short[plan.Place{Node: strings.TrimPrefix(place.Node, f.namespace), Round: place.Round}] = true
	}
	end.finished = short
	for name, round := range end.placed {
		for i := range round.Nodes {
			round.Nodes[i] = strings.TrimPrefix(round.Nodes[i], f.namespace)
		}
		end.placed[name] = round
	}
	return end, f.requests.seen
}

// workStory: a Goop runs, a node leaves, the Goop is suspended and resumed, one worker fails, and the TTL expires.
func workStory(f *goopTestEnv) storyEnd {
	f.create(workers(3), ttl(60))
	f.runs("a/0", "a/1", "b/0")
	f.ends(0, "", "b/0")
	f.change(suspended)
	f.change(resumed)
	f.leave("b")
	f.runs("a/0", "a/1")
	f.ends(3, "no", "a/0")
	f.ends(0, "", "a/1")
	end := f.storyEnd()
	f.clock.Step(time.Minute)
	f.settle()
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).To(BeEmpty())
	end.status = f.goop().Status
	f.Expect(end.status.Succeeded).To(Equal(int32(2)))
	f.Expect(end.status.Failed).To(Equal(int32(1)))
	return end
}

// cleanupStoryOf: a Goop without a jobCount runs, is deleted, and its nodes are cleaned up.
func cleanupStoryOf(f *goopTestEnv) storyEnd {
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.ends(0, "", "a/0")
	end := f.storyEnd()
	f.delete()
	f.ends(0, "", "a/cleanup", "b/cleanup")
	end.gone = f.gone()
	f.Expect(end.gone).To(BeTrue())
	return end
}

func (f *goopTestEnv) storyEnd() storyEnd {
	end := storyEnd{status: f.goop().Status, finalizers: f.goop().Finalizers, finished: f.record().Finished, placed: map[string]plan.Round{}}
	for name, daemonSet := range f.daemonSets() {
		end.placed[name] = roundOf(0, daemonSet)
	}
	return end
}
