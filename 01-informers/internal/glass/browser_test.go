package glass

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/01-informers/internal/handmade"
)

func TestPage(t *testing.T) {
	b := startBrowser(t)
	t.Run("StagesOfAConfigMap", b.stagesOfAConfigMap)
	t.Run("StepByStep", b.stepByStep)
	t.Run("KeyboardOnly", b.keyboardOnly)
	t.Run("BackOff", b.backOff)
	t.Run("AfterALostConnection", b.afterALostConnection)
	t.Run("Dropped", b.droppedEvents)
	t.Run("AnotherRun", b.anotherRun)
	t.Run("NamesAreOnlyText", b.namesAreOnlyText)
	t.Run("WithoutAnimations", b.withoutAnimations)
	t.Run("Readable", b.readable)
	// This one measures: it runs alone, because the others pause at t.Parallel until it has ended.
	t.Run("KeepsUp", b.keepsUp)
}

// cardIn is an expression: whether a part has a card with a text.
func cardIn(stage, look, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('[data-stage=%q] .card[data-look=%q]')].some(one => one.textContent.includes(%q))`, stage, look, text)
}

func (s *site) change(t *testing.T, name, patch string) {
	t.Helper()
	if _, err := s.client.CoreV1().ConfigMaps(s.ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// history returns the stages of the followed item in the panel.
func (p *tab) history() []string {
	p.Helper()
	return evaluate[[]string](p, `[...document.querySelectorAll(".history b")].map(one => one.textContent)`)
}

// follow clicks a card.
func (p *tab) follow(stage, look, text string) {
	p.Helper()
	p.eventually(cardIn(stage, look, text))
	evaluate[bool](p, fmt.Sprintf(`([...document.querySelectorAll('[data-stage=%q] .card[data-look=%q]')].find(one => one.textContent.includes(%q)).click(), true)`, stage, look, text))
}

func (b browser) stagesOfAConfigMap(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{WorkTime: 20 * time.Millisecond}).synced(t)
	page := b.open(t, s.URL)
	all := []string{"Watch", "Queue", "Store", "Handlers", "Waiting", "Working", "Done"}

	for _, step := range []struct {
		what, sign           string
		do                   func()
		watch, queue, handle string
	}{
		{"applied", "+", func() { s.create(t, "apple") }, "ADDED", "Added", "add"},
		{"changed", "~", func() { s.change(t, "apple", `{"data":{"colour":"green"}}`) }, "MODIFIED", "Updated", "update"},
		{"deleted", "−", func() {
			page.Expect(s.client.CoreV1().ConfigMaps(s.ns).Delete(t.Context(), "apple", metav1.DeleteOptions{})).To(Succeed())
		}, "DELETED", "Deleted", "delete"},
	} {
		step.do()
		page.eventually(cardIn("watch", "past", step.sign+"apple"+step.watch))
		page.eventually(cardIn("queue", "past", step.sign+"apple"+step.queue))
		page.eventually(cardIn("handler", "past", step.sign+"apple"+step.handle))
		for _, stage := range []string{"waiting", "working", "done"} {
			page.eventually(cardIn(stage, "past", step.sign+"apple"))
		}
		page.eventually(fmt.Sprintf(`%s === %t`, cardIn("store", "kept", "apple"), step.what != "deleted"))
		page.follow("done", "past", step.sign+"apple")
		page.Eventually(page.history, drawn).Should(Equal(all), step.what)
		if step.what == "changed" {
			evaluate[bool](page, `document.querySelector("summary").click() ?? true`)
			page.eventually(`document.querySelector("pre").textContent.includes("colour: green")`)
			// One in each part.
			page.eventually(`document.querySelectorAll(".card.followed").length === 7`)
			page.screenshot("glass-followed.png")
		}
	}
	page.eventually(`document.querySelector("pre").textContent === "The store has no such object."`)
	page.eventually(`document.querySelector('[data-stage="done"] .total').textContent.startsWith("` + fmt.Sprint(s.state(t).Now.Totals[handmade.StageDone]) + ` so far")`)
}

func (b browser) stepByStep(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{}).synced(t)
	s.create(t, "before")
	page := b.open(t, s.URL)
	page.eventually(cardIn("done", "past", "before"))
	page.run(chromedp.Click("#pause"))
	page.eventually(`document.querySelector("#running").textContent === "paused" && document.querySelector("#pause").textContent.startsWith("Resume")`)
	s.create(t, "apple")
	for i, stage := range []string{"watch", "queue", "store", "handler", "waiting", "working", "done"} {
		page.eventually(cardIn(stage, "held", "apple"))
		if i == 4 {
			page.follow("handler", "here", "apple")
			page.screenshot("glass-paused.png")
		}
		page.Expect(evaluate[int](page, `document.querySelectorAll('.card[data-look="held"]').length`)).To(Equal(1))
		page.run(chromedp.Click("#step"))
		look := "here"
		if stage == "done" {
			look = "past"
		}
		page.eventually(cardIn(stage, look, "apple"))
		page.Expect(s.state(t).Items).To(ContainElement(And(HaveField("Key", s.ns+"/apple"), HaveField("Stage", handmade.Stage(stage)))))
		page.Expect(evaluate[int](page, `document.querySelectorAll('.part:not([data-stage="store"]) .card[data-look="here"]').length`)).To(BeNumerically("<=", 1), "one item, in one place")
	}
	page.Expect(page.history()).To(HaveLen(7))
	page.run(chromedp.Click("#step"))
	page.eventually(`document.querySelector("#live").textContent === "No item waits, so none moved."`)
	page.run(chromedp.Click("#pause"))
	page.eventually(`document.querySelector("#running").textContent === "running"`)
}

func (b browser) keyboardOnly(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{}).synced(t)
	page := b.open(t, s.URL)
	page.press("?")
	page.eventually(`document.querySelector("#help").open`)
	page.press(kb.Escape)
	page.eventually(`!document.querySelector("#help").open`)
	page.press(" ")
	page.eventually(`document.querySelector("#running").textContent === "paused"`)
	s.create(t, "apple")
	page.eventually(cardIn("watch", "held", "apple"))
	page.press("s")
	page.eventually(cardIn("watch", "here", "apple"))

	// Tab moves the focus to the item: it is followed, and keeps the focus when it moves.
	focused := func() string {
		return evaluate[string](page, `(document.activeElement.closest("[data-stage]")?.dataset.stage ?? document.activeElement.id) + " " + (document.activeElement.dataset.look ?? "")`)
	}
	for range 12 {
		if focused() == "watch here" {
			break
		}
		page.press(kb.Tab)
	}
	page.Expect(focused()).To(Equal("watch here"))
	page.eventually(`document.querySelector("#follow-title").textContent === "Following ` + s.ns + `/apple"`)
	for _, stage := range []string{"queue", "store", "handler"} {
		page.eventually(cardIn(stage, "held", "apple"))
		page.press("s")
		page.Eventually(focused, drawn).Should(Equal(stage + " here"))
	}
	page.press(kb.ArrowLeft)
	page.Expect(focused()).To(HavePrefix("store"))
	page.press(kb.ArrowRight)
	page.Expect(focused()).To(HavePrefix("handler"))
	page.press(kb.Enter)
	page.Expect(focused()).To(Equal("follow "))
	page.press(kb.Escape)
	page.eventually(`document.querySelector("#follow-title").textContent === "Follow an item"`)
	page.press(" ")
	page.eventually(`document.querySelector("#running").textContent === "running"`)
	page.eventually(cardIn("done", "past", "apple"))

	// Space on a button that has the focus presses that one, once.
	evaluate[bool](page, `document.querySelector("#pause").focus() ?? true`)
	page.press(" ")
	page.eventually(`document.querySelector("#running").textContent === "paused"`)
	page.Expect(evaluate[string](page, `getComputedStyle(document.activeElement).outlineStyle`)).To(Equal("solid"), "the focus is visible")
}

func (b browser) backOff(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{FailEvery: 1, Workers: 2, WorkTime: 300 * time.Millisecond}).synced(t)
	page := b.open(t, s.URL)
	for _, name := range []string{"apple", "pear", "plum", "cherry", "quince", "fig"} {
		s.create(t, name)
	}
	page.eventually(cardIn("backoff", "here", "attempt 2, queued in"))
	page.follow("backoff", "here", "attempt ")
	page.screenshot("glass-busy.png")
	page.Expect(page.history()).To(ContainElements("Backoff", "Waiting"))
	page.eventually(`document.querySelector(".history").textContent.includes("a simulated failure")`)
	page.Expect(evaluate[string](page, `document.querySelector("#resource").textContent`)).To(HaveSuffix("all work fails"))
	page.run(phone)
	page.Expect(evaluate[bool](page, `document.documentElement.scrollWidth <= innerWidth`)).To(BeTrue(), "a phone's width is enough")
	page.screenshot("glass-phone.png")
}
