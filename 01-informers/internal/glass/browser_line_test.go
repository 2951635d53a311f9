package glass

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/handmade"
)

// link is a connection between page and server that can be cut.
type link struct {
	*httptest.Server
	cut atomic.Bool

	mu   sync.Mutex
	next http.Handler
	last string // the Last-Event-ID of the last request to /events
}

func newLink(t *testing.T, next http.Handler) *link {
	t.Helper()
	l := &link{next: next}
	l.Server = httptest.NewServer(l)
	t.Cleanup(func() { l.interrupt(); l.Close() })
	return l
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.cut.Load() {
		panic(http.ErrAbortHandler)
	}
	l.mu.Lock()
	if r.URL.Path == "/events" {
		l.last = r.Header.Get("Last-Event-ID")
	}
	next := l.next
	l.mu.Unlock()
	next.ServeHTTP(w, r)
}

func (l *link) interrupt() {
	l.cut.Store(true)
	l.CloseClientConnections()
}

func (l *link) restore(next http.Handler) {
	l.mu.Lock()
	l.next = next
	l.mu.Unlock()
	l.cut.Store(false)
}

func (l *link) lastEventID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// cutWhile cuts the connection during a call, and waits until the page is connected again.
func (p *tab) cutWhile(l *link, call func(), next http.Handler) {
	p.Helper()
	p.tolerated = "net::ERR_"
	l.interrupt()
	p.eventually(`document.querySelector("#connection").dataset.is === "lost"`)
	call()
	l.restore(next)
	p.eventually(`document.querySelector("#connection").dataset.is === "connected"`)
}

func (b browser) afterALostConnection(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{}).synced(t)
	l := newLink(t, s.glass)
	page := b.open(t, l.URL)
	s.create(t, "apple")
	page.eventually(cardIn("done", "past", "apple"))
	before := s.state(t).Cursor
	page.cutWhile(l, func() { s.create(t, "pear") }, s.glass)
	// The last events that the server had sent may not have arrived.
	page.Expect(cursorOf(t, l.lastEventID())).To(And(BeNumerically(">", 0), BeNumerically("<=", cursorOf(t, before))), "it continues after the last event")
	page.follow("done", "past", "pear")
	page.Eventually(page.history, drawn).Should(HaveLen(7), "each event is received once")
	page.eventually(`document.querySelector("#warning").hidden`)
	page.eventually(`document.querySelector('[data-stage="done"] .total').textContent.startsWith("` + fmt.Sprint(s.state(t).Now.Totals[handmade.StageDone]) + ` ")`)
}

// cursorOf returns the number in the id of an event.
func cursorOf(t *testing.T, id string) int {
	t.Helper()
	_, number, _ := strings.Cut(id, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q is not the id of an event: %v", id, err)
	}
	return n
}

func (b browser) droppedEvents(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits()
	limits.Ring = 20
	s := open(t, "configmaps", Options{Limits: limits}).synced(t)
	l := newLink(t, s.glass)
	page := b.open(t, l.URL)
	s.create(t, "apple")
	page.eventually(cardIn("done", "past", "apple"))
	page.follow("done", "past", "apple")
	page.cutWhile(l, func() {
		for i := range 10 {
			s.create(t, fmt.Sprintf("pear-%d", i))
		}
		page.Eventually(func() int { return s.state(t).Now.Counts.Store }, soon).Should(Equal(11))
		page.Eventually(func() uint64 { return s.state(t).Now.Totals[handmade.StageDone] }, soon).Should(BeEquivalentTo(11))
	}, s.glass)
	page.eventually(`document.querySelector("#warning").textContent.includes("events were dropped because this page was too slow")`)
	page.Expect(evaluate[string](page, `document.querySelector("#warning").textContent`)).
		To(HavePrefix(fmt.Sprint(s.state(t).Now.Dropped) + " events"))
	page.eventually(cardIn("store", "kept", "pear-9"))
	page.eventually(`document.querySelector('[data-stage="store"] .number').textContent === "11"`)
	page.Expect(page.history()).To(HaveLen(7), "the page keeps the history of an item")
	s.create(t, "plum")
	page.eventually(cardIn("done", "past", "plum"))
}

func (b browser) anotherRun(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{}).synced(t)
	s.create(t, "apple")
	l := newLink(t, s.glass)
	page := b.open(t, l.URL)
	page.eventually(cardIn("done", "past", "apple"))
	page.eventually(cardIn("watch", "past", "apple"))
	restarted := open(t, "configmaps", Options{Namespace: s.ns}).synced(t)
	page.cutWhile(l, func() {}, restarted.glass)
	page.eventually(cardIn("list", "past", "apple") + ` && !` + cardIn("watch", "past", "apple"))
	s.create(t, "pear")
	page.eventually(cardIn("done", "past", "pear"))
}

// namesAreOnlyText publishes events with markup, which the page shows as text.
func (b browser) namesAreOnlyText(t *testing.T) {
	t.Parallel()
	const markup = `<img src="x" onerror="document.title='taken'">`
	s := open(t, "configmaps", Options{}).synced(t)
	page := b.open(t, s.URL)
	for _, stage := range []handmade.Stage{handmade.StageWatch, handmade.StageQueue} {
		s.glass.hub.mu.Lock()
		s.glass.hub.publish(Event{Event: handmade.Event{Stage: stage, Type: markup, Item: markup}, Key: markup, Text: markup})
		s.glass.hub.mu.Unlock()
	}
	page.follow("queue", "here", `onerror`)
	page.Expect(evaluate[int](page, `document.querySelectorAll("img").length`)).To(BeZero())
	page.Expect(evaluate[string](page, `document.title`)).To(Equal("The glass informer"))
	page.eventually(`document.querySelector("#log-list").textContent.includes("<img")`)
}

func (b browser) withoutAnimations(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{FailEvery: 1}).synced(t)
	s.create(t, "apple")
	calm := command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	for want, setup := range map[string][]action{"come": nil, "none": {calm}} {
		page := b.open(t, s.URL, setup...)
		page.eventually(`[...document.querySelectorAll('.card[data-look="here"]')].some((one) => getComputedStyle(one).animationName === "` + want + `")`)
		page.Expect(evaluate[bool](page, `[...document.querySelectorAll('.card[data-look="here"]')].every((one) => getComputedStyle(one).animationName === "`+want+`")`)).To(BeTrue())
	}
}

// readable measures the contrast of all text, in both schemes.
func (b browser) readable(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{FailEvery: 2}).synced(t)
	s.create(t, "apple")
	s.create(t, "pear")
	for name, setup := range map[string][]action{"light": nil, "dark": {dark}} {
		page := b.open(t, s.URL, setup...)
		page.follow("done", "past", "apple")
		poor := evaluate[[]string](page, contrast)
		page.Expect(poor).To(BeEmpty(), name)
		page.screenshot("glass-" + name + ".png")
	}
}

// contrast is an expression: the texts whose contrast with their background is below 4.5.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgb = (colour) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = colour;
		canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const light = (colour) => {
		const [r, g, b] = rgb(colour).map((c) => c / 255).map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const behind = (element) => {
		for (; element; element = element.parentElement) {
			const colour = getComputedStyle(element).backgroundColor;
			if (rgb(colour)[3] === 255) return colour;
		}
		return "white";
	};
	const poor = [];
	for (const element of document.querySelectorAll("body *")) {
		const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
		if (!text || !element.checkVisibility() || element.disabled) continue;
		const two = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => a - b);
		if ((two[1] + .05) / (two[0] + .05) < 4.5) poor.push(element.tagName + "." + element.className + " " + element.textContent);
	}
	return poor;
})()`
