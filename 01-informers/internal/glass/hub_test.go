package glass

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/internal/handmade"
)

// small are limits that tests reach.
var small = Limits{Ring: 8, Batch: 3, Flush: 10 * time.Millisecond, Items: 4, Log: 5, Objects: 2, Clients: 2}

func newTestHub() (*hub, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	return newHub(clock, small, &handmade.Gate{}), clock
}

func happened(stage handmade.Stage, what, name string, version int) handmade.Event {
	return handmade.Event{
		Stage: stage, Type: what, Key: cache.ObjectName{Namespace: "ns", Name: name},
		Item: fmt.Sprintf("%s@%d", name, version), ResourceVersion: fmt.Sprint(version),
	}
}

func TestHubSetsSeqAndTime(t *testing.T) {
	g := NewWithT(t)
	h, clock := newTestHub()
	h.observe(happened(handmade.StageWatch, "ADDED", "a", 1))
	clock.Step(1500 * time.Millisecond)
	h.control("paused", "held")
	batch, lost := h.read(0)
	g.Expect(lost).To(BeNil())
	g.Expect(batch.Events).To(HaveLen(2))
	g.Expect(batch.Events[0]).To(Equal(Event{
		Seq: 1, Time: 0, Event: happened(handmade.StageWatch, "ADDED", "a", 1), Key: "ns/a", Text: "The watch delivers ADDED for ns/a",
	}))
	g.Expect(json.Marshal(batch.Events[0])).To(MatchJSON(
		`{"seq":1,"time":0,"stage":"watch","type":"ADDED","item":"a@1","resourceVersion":"1","key":"ns/a","text":"The watch delivers ADDED for ns/a"}`))
	g.Expect(batch.Events[1].Time).To(BeEquivalentTo(1500))
	g.Expect(batch.Now.Totals).To(Equal(map[handmade.Stage]uint64{handmade.StageWatch: 1}), "an event of control has no key")
}

func TestSlowClientGetsDropped(t *testing.T) {
	g := NewWithT(t)
	h, _ := newTestHub()
	for i := range 20 {
		h.observe(happened(handmade.StageWatch, "MODIFIED", "a", i))
	}
	_, lost := h.read(2)
	g.Expect(lost).To(Equal(&Dropped{Count: 10, From: 3, To: 12}), "the ring has 13 to 20")
	h.countDropped(lost)
	batch, lost := h.read(12)
	g.Expect(lost).To(BeNil())
	g.Expect(batch.Events).To(HaveLen(3), "no more than a batch")
	g.Expect(batch.Events[0].Seq).To(BeEquivalentTo(13))
	g.Expect(h.snapshot().Dropped).To(BeEquivalentTo(10))

	batch, lost = h.read(15)
	g.Expect(lost).To(BeNil())
	g.Expect(batch.Events[2].Seq).To(BeEquivalentTo(18))
	batch, lost = h.read(20)
	g.Expect(lost).To(BeNil())
	g.Expect(batch.Events).To(BeEmpty())
	g.Expect(h.wait(19)).To(BeClosed())
	g.Expect(h.wait(20)).NotTo(BeClosed())
}

func TestStateIsBounded(t *testing.T) {
	g := NewWithT(t)
	h, _ := newTestHub()
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		h.observe(happened(handmade.StageStore, handmade.Add, name, i))
	}
	h.observe(happened(handmade.StageHandler, handmade.Add, "c", 2))
	state := h.state()
	var items, objects []string
	for _, event := range state.Items {
		items = append(items, event.Item+" "+string(event.Stage))
	}
	for _, object := range state.Objects {
		objects = append(objects, object.Key)
	}
	g.Expect(items).To(Equal([]string{"d@3 store", "e@4 store", "f@5 store", "c@2 handler"}), "each once, the latest last")
	g.Expect(h.items).To(HaveLen(small.Items))
	g.Expect(objects).To(Equal([]string{"ns/a", "ns/b"}))
	g.Expect(state.Now.Counts.Store).To(Equal(6), "objects that are left out count")
	g.Expect(state.Log).To(HaveLen(small.Log))
	g.Expect(state.Log[4].Seq).To(Equal(state.Now.Seq))
	seq, ok := h.parseCursor(state.Cursor)
	g.Expect(ok).To(BeTrue())
	g.Expect(seq).To(Equal(state.Now.Seq))
}

func TestCursorsOfOtherRunsAreRejected(t *testing.T) {
	g := NewWithT(t)
	h, _ := newTestHub()
	h.control("paused", "")
	for _, cursor := range []string{"", "1", "other.1", h.run + ".", h.run + ".x", h.run + ".2", h.run + ".-1"} {
		_, ok := h.parseCursor(cursor)
		g.Expect(ok).To(BeFalse(), "%q", cursor)
	}
	_, ok := h.parseCursor(h.run + ".1")
	g.Expect(ok).To(BeTrue())
}

func TestCountsFollowTheEvents(t *testing.T) {
	g := NewWithT(t)
	h, _ := newTestHub()
	see := func(stage handmade.Stage, what string, want Counts, change ...func(*handmade.Event)) {
		t.Helper()
		event := happened(stage, what, "a", 1)
		for _, f := range change {
			f(&event)
		}
		h.observe(event)
		g.Expect(h.snapshot().Counts).To(Equal(want))
	}
	noKey := func(e *handmade.Event) { e.Key, e.Item = cache.ObjectName{}, "" }
	partOfList := func(e *handmade.Event) { e.PartOfList = true }
	backedOff := func(e *handmade.Event) { e.BackedOff = true }

	see(handmade.StageQueue, "ReplacedAll", Counts{Queue: 1}, noKey)
	see(handmade.StageQueue, "ReplacedAll", Counts{Queue: 1}, partOfList)
	see(handmade.StageStore, handmade.Replace, Counts{}, noKey)
	see(handmade.StageStore, handmade.Add, Counts{Store: 1}, partOfList)
	see(handmade.StageQueue, "Bookmark", Counts{Store: 1, Queue: 1}, noKey)
	see(handmade.StageStore, handmade.Bookmark, Counts{Store: 1}, noKey)
	see(handmade.StageWaiting, handmade.Waits, Counts{Store: 1, Waiting: 1})
	see(handmade.StageWaiting, handmade.Merged, Counts{Store: 1, Waiting: 1})
	see(handmade.StageWorking, handmade.Started, Counts{Store: 1, Working: 1})
	see(handmade.StageWaiting, handmade.Dirty, Counts{Store: 1, Working: 1})
	see(handmade.StageBackoff, handmade.Failed, Counts{Store: 1, Backoff: 1})
	see(handmade.StageWaiting, handmade.Readded, Counts{Store: 1, Backoff: 1, Waiting: 1})
	see(handmade.StageWaiting, handmade.Merged, Counts{Store: 1, Waiting: 1}, backedOff)
	see(handmade.StageWorking, handmade.Started, Counts{Store: 1, Working: 1})
	see(handmade.StageDone, handmade.Done, Counts{Store: 1})
	see(handmade.StageQueue, "Deleted", Counts{Store: 1, Queue: 1})
	see(handmade.StageStore, handmade.Delete, Counts{})
}
