package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// part is a step of a story, and what the controllers do until they have nothing to do.
type part struct {
	requests []string
	end      state
}

// crashes are all that a part can have: each write fails before it is sent, and after it took effect.
func (p part) crashes() []crash {
	var all []crash
	seen := map[string]int{}
	for _, what := range p.requests {
		seen[what]++
		if !strings.HasPrefix(what, http.MethodGet) {
			all = append(all, crash{what: what, at: seen[what]}, crash{what: what, at: seen[what], after: true})
		}
	}
	return all
}

// TestCrashAtEveryRequest runs two stories once without errors, and once with every read failed the first time that it is
// sent. Then each is repeated, with a crash at a write of the controller in each of its parts, until each part has had all of
// its crashes. What exists at the end of each part is always the same, and no work has begun more often.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]func(*story){"work": workStory, "cleanup": cleanupStory} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := runStory(t, steps, nil, nil)
			requests, crashes, most := 0, 0, 0
			for _, p := range undisturbed {
				requests, crashes, most = requests+len(p.requests), crashes+len(p.crashes()), max(most, len(p.crashes()))
			}
			if requests < 50 {
				t.Fatalf("the story has only %d requests: it does not test what it should", requests)
			}
			t.Run("reads", func(t *testing.T) {
				t.Parallel()
				repeated := 0
				for _, p := range runStory(t, steps, slices.Repeat([]crash{{reads: true}}, len(undisturbed)), undisturbed) {
					repeated += len(p.requests)
				}
				NewWithT(t).Expect(repeated).To(BeNumerically(">", 2*requests), "too few requests were repeated")
			})
			for n := range most {
				// A random sample covers most of it.
				if testing.Short() && rand.IntN(4) > 0 {
					continue
				}
				planned := make([]crash, len(undisturbed))
				for i, p := range undisturbed {
					if all := p.crashes(); n < len(all) {
						planned[i] = all[n]
					}
				}
				t.Run(fmt.Sprintf("crash %d of each part", n+1), func(t *testing.T) {
					t.Parallel()
					runStory(t, steps, planned, undisturbed)
				})
			}
			t.Logf("%d requests, %d crashes at writes in %d stories of %d parts", requests, crashes, most, len(undisturbed))
		})
	}
}

// state is what exists, without what differs between runs.
type state struct {
	Status     v1alpha1.GoopStatus
	Finished   map[plan.Place]bool
	Placed     map[string]plan.Round
	Pods       map[string]int
	Finalizers []string
	Gone       bool
}

// story is one run of a story. Each of its parts may have a crash, and is compared with the undisturbed one.
type story struct {
	*goopTestEnv
	crashes            []crash
	undisturbed, parts []part
}

func runStory(t *testing.T, steps func(*story), crashes []crash, undisturbed []part) []part {
	t.Helper()
	s := &story{goopTestEnv: newGoopTestEnv(t, "a", "b"), crashes: crashes, undisturbed: undisturbed}
	s.repeatReads()
	steps(s)
	return s.parts
}

// part runs one step, which settles, and expects of it what the undisturbed one was.
func (s *story) part(step func()) {
	number := len(s.parts)
	s.requests.seen, s.requests.crash = nil, crash{}
	if s.crashes != nil {
		s.requests.crash = s.crashes[number]
	}
	step()
	now := part{requests: s.requests.seen, end: s.state()}
	s.parts = append(s.parts, now)
	if s.crashes == nil {
		return
	}
	where := fmt.Sprintf("part %d, %+v", number, s.requests.crash)
	s.Expect(s.requests.count(s.requests.crash.what)).To(BeNumerically(">=", s.requests.crash.at), "%s: the crash did not happen", where)
	s.Expect(now.end).To(BeComparableTo(s.undisturbed[number].end), where)
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

// workStory: a Goop runs, a node leaves, the Goop is suspended and resumed, one worker fails, and the TTL expires.
func workStory(s *story) {
	s.part(func() { s.create(workers(3), ttl(60)) })
	s.part(func() { s.runs("a/0", "a/1", "b/0") })
	s.part(func() { s.ends(0, "", "b/0") })
	s.part(func() { s.change(suspended) })
	s.part(func() { s.change(resumed) })
	s.part(func() { s.leave("b") })
	s.part(func() { s.runs("a/0", "a/1") })
	s.part(func() { s.ends(3, "no", "a/0") })
	s.part(func() { s.ends(0, "", "a/1") })
	s.part(func() {
		s.clock.Step(time.Minute)
		s.settle()
	})
	s.Expect(s.daemonSets()).To(BeEmpty())
	s.Expect(s.shards()).To(BeEmpty())
	status := s.goop().Status
	s.Expect(status.Succeeded).To(Equal(int32(2)))
	s.Expect(status.Failed).To(Equal(int32(1)))
}

// cleanupStory: a Goop without a jobCount runs, is deleted, and its nodes are cleaned up.
func cleanupStory(s *story) {
	s.part(func() { s.create(cleanup) })
	s.part(func() { s.runs("a/0", "b/0") })
	s.part(func() { s.ends(0, "", "a/0") })
	s.part(s.delete)
	s.part(func() { s.ends(0, "", "a/cleanup", "b/cleanup") })
	s.Expect(s.gone()).To(BeTrue())
}

func (s *story) state() state {
	now := state{Pods: maps.Clone(s.pods), Gone: s.gone()}
	if now.Gone {
		return now
	}
	goop := s.goop()
	now.Status, now.Finalizers = goop.Status, goop.Finalizers
	// The names of nodes begin with the namespace.
	now.Status.Failures = nil
	// The uids of the ConfigMaps differ between runs.
	for i := range now.Status.RecordUIDs {
		now.Status.RecordUIDs[i] = "uid"
	}
	for i := range now.Status.Conditions {
		now.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		now.Status.Conditions[i].Message = ""
	}
	now.Status.StartTime, now.Status.CompletionTime, now.Status.CleanupStartTime = nil, nil, nil
	now.Finished, now.Placed = map[plan.Place]bool{}, map[string]plan.Round{}
	for place := range s.record().Finished {
		now.Finished[plan.Place{Node: strings.TrimPrefix(place.Node, s.namespace), Round: place.Round}] = true
	}
	for name, daemonSet := range s.daemonSets() {
		round := roundOf(0, daemonSet)
		for i := range round.Nodes {
			round.Nodes[i] = strings.TrimPrefix(round.Nodes[i], s.namespace)
		}
		now.Placed[name] = round
	}
	return now
}
