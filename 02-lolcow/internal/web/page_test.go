package web

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// All that follows happens in a real browser.
func TestPageInBrowser(t *testing.T) {
	browser := startBrowser(t)

	t.Run("shows the greeting exactly as written", func(t *testing.T) {
		for name, greeting := range greetings {
			t.Run(name, func(t *testing.T) {
				page := browser.open(t, greeting, desktop)
				if got := evaluate[string](page, `document.getElementById("greeting").textContent`); got != greeting {
					t.Errorf("the balloon holds %q, want %q", got, greeting)
				}
				if got := evaluate[int](page, `document.getElementById("greeting").childElementCount`); got != 0 {
					t.Errorf("the greeting became %d HTML elements", got)
				}
				if got := evaluate[string](page, `document.title`); got == "moo" {
					t.Error("the greeting was executed: it changed the page's title")
				}
				page.screenshot("lolcow-desktop-" + strings.ReplaceAll(name, " ", "-") + ".png")
			})
		}
	})

	t.Run("keeps the lines of the greeting", func(t *testing.T) {
		const lineHeights = `document.getElementById("greeting").getBoundingClientRect().height
			/ parseFloat(getComputedStyle(document.getElementById("greeting")).lineHeight)`
		page := browser.open(t, "one\n\n  three", desktop)
		if got := evaluate[float64](page, lineHeights); got < 2.9 || got > 3.1 {
			t.Errorf("a greeting of three lines is %.1f lines high", got)
		}
	})

	t.Run("the cat flies", func(t *testing.T) {
		page := browser.open(t, "Fly!", desktop)
		if positions := page.catPositions(); len(positions) < 2 {
			t.Errorf("the cat stays at %v for 20 frames", positions)
		}
	})

	t.Run("the cat holds still when asked", func(t *testing.T) {
		page := browser.open(t, "Stay!", desktop)
		page.run(chromedp.Click(chromedp.CSS("#still")))
		if positions := page.catPositions(); len(positions) != 1 {
			t.Errorf("the cat moves: %v", positions)
		}
	})

	t.Run("nothing moves for those who want less motion", func(t *testing.T) {
		page := browser.open(t, "Calm.", desktop, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
		}))
		if positions := page.catPositions(); len(positions) != 1 {
			t.Errorf("the cat moves: %v", positions)
		}
		if got := evaluate[int](page, `document.getAnimations().length`); got != 0 {
			t.Errorf("%d animations run", got)
		}
	})

	t.Run("fits on a phone", func(t *testing.T) {
		for name, greeting := range map[string]string{
			"short":    "Hello, world!",
			"long":     greetings["long"],
			"one word": strings.Repeat("m", 512) + strings.Repeat("O", 512),
		} {
			t.Run(name, func(t *testing.T) {
				page := browser.open(t, greeting, phone)
				if got := evaluate[int](page, `document.documentElement.scrollWidth`); got > 390 {
					t.Errorf("the page is %d pixels wide on a phone of 390: it scrolls sideways", got)
				}
				const inside = `["greeting", "cat"].every(id => {
					const box = document.getElementById(id).getBoundingClientRect();
					return box.width > 100 && box.left >= 0 && box.right <= innerWidth;
				})`
				if !evaluate[bool](page, inside) {
					t.Error("the greeting or the cat reaches over the edge of the phone")
				}
				page.screenshot("lolcow-phone-" + strings.ReplaceAll(name, " ", "-") + ".png")
			})
		}
	})
}
