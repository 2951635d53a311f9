package main

import (
	"path"
	"strings"
	"testing"
)

// legible is the least contrast between a text and what is behind it that WCAG 2 allows (success criterion 1.4.3, AA).
const legible = 4.5

// wcag begins a script with WCAG 2's formula for the contrast of two colours.
const wcag = `(() => {
	const numbers = (colour) => (colour.match(/[0-9.]+/g) ?? [0, 0, 0, 0]).map(Number);
	const luminance = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
	const contrast = (one, other) => { const pair = [luminance(one), luminance(other)]; return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05); };
	let least = 100, where = "";
	const compare = (text, ground, what) => { const found = contrast(text, ground); if (found < least) { least = found; where = what; } };
`

// contrastOfWords ends it for the words of a page outside of its diagrams.
const contrastOfWords = `
	const ground = (one) => { for (; one; one = one.parentElement) { const colour = numbers(getComputedStyle(one).backgroundColor);
		if (colour.length < 4 || colour[3] > 0.5) return colour; } return [255, 255, 255]; };
	const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (words.nextNode()) {
		const one = words.currentNode.parentElement;
		if (!words.currentNode.data.trim() || one.closest("svg, script, style, .anchor") || !one.checkVisibility({ opacityProperty: true })) continue;
		compare(numbers(getComputedStyle(one).color), ground(one), one.outerHTML.slice(0, 80));
	}
	return { least, where, ground: luminance(ground(document.body)), drawn: document.querySelector(".diagram")?.dataset.drawn ?? "" };
})()`

// contrastOfDiagrams ends it for the words in diagrams. What is behind them is whatever is painted at their middle, from
// the page upwards; labels of arrows are half transparent.
const contrastOfDiagrams = `
	const paints = (one) => {
		const style = getComputedStyle(one), shape = one instanceof SVGElement;
		if (shape && (one.closest("text") || !(one instanceof SVGGeometryElement))) return [0, 0, 0, 0];
		const [r, g, b, a = 1] = numbers(shape ? style.fill.replace("none", "") : style.backgroundColor);
		return [r, g, b, a * style.opacity * (shape ? style.fillOpacity : 1)];
	};
	let labels = 0;
	const words = document.createTreeWalker(document.querySelector(".text"), NodeFilter.SHOW_TEXT);
	while (words.nextNode()) {
		const one = words.currentNode.parentElement;
		if (!words.currentNode.data.trim() || !one.closest(".diagram svg") || one.closest("style, title, desc")) continue;
		one.scrollIntoView({ block: "center", inline: "center" });
		const range = document.createRange();
		range.selectNodeContents(words.currentNode);
		const box = range.getBoundingClientRect();
		const under = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).reverse();
		const ground = under.map(paints).reduce((below, [r, g, b, a]) => [r, g, b].map((c, n) => c * a + below[n] * (1 - a)), [255, 255, 255]);
		compare(numbers(one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color), ground, words.currentNode.data);
		labels++;
	}
	return { least, where, labels };
})()`

// TestSchemes looks whether every word is legible, for those who like it light and for those who like it dark, and takes
// pictures of it.
func TestSchemes(t *testing.T) {
	home := serveSite(t, siteDir(t))
	chromium := startBrowser(t)
	pages := []string{
		"/index.html", "/troubleshooting.html", "/10-a-raw-controller.html", "/05-list-and-watch-by-hand.html",
		"/repository/01-informers/internal/raw/loop.go.html",
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, size := range map[string]action{"desktop": desktop, "phone": phone} {
			p := chromium.open(t, home, size, prefers(scheme))
			for _, address := range pages {
				page := strings.TrimSuffix(path.Base(address), ".html")
				t.Run(strings.Join([]string{page, scheme, name}, " "), func(t *testing.T) {
					p.visit(t, address)
					got := evaluate[struct {
						Least, Ground float64
						Where, Drawn  string
					}](t, p, wcag+contrastOfWords)
					if got.Least < legible {
						t.Errorf("a contrast of %.2f is not legible: %s", got.Least, got.Where)
					}
					if isDark := got.Ground < 0.1; isDark != (scheme == "dark") {
						t.Errorf("the page is not %s: its ground has luminance %.2f", scheme, got.Ground)
					}
					if got.Drawn != "" && got.Drawn != scheme {
						t.Errorf("the diagram is drawn %s", got.Drawn)
					}
					p.screenshot(t, strings.Join([]string{page, scheme, name}, "-")+".png")
					if got.Drawn != "" {
						evaluate[bool](t, p, `(document.querySelector(".diagram").scrollIntoView(), true)`)
						p.screenshot(t, strings.Join([]string{page, "diagram", scheme, name}, "-")+".png")
					}
				})
			}
		}
	}
}

// TestDiagramsAreLegible looks at every word in every diagram, on light and on dark ground.
func TestDiagramsAreLegible(t *testing.T) {
	home := serveSite(t, siteDir(t))
	chromium := startBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		p := chromium.open(t, home, desktop, prefers(scheme))
		for _, address := range chapters(t) {
			t.Run(path.Base(address)+" "+scheme, func(t *testing.T) {
				p.visit(t, address)
				got := evaluate[struct {
					Least  float64
					Where  string
					Labels int
				}](t, p, wcag+contrastOfDiagrams)
				if got.Labels < 3 {
					t.Errorf("only %d words of diagrams were found", got.Labels)
				}
				if got.Least < legible {
					t.Errorf("a contrast of %.2f is not legible: %q", got.Least, got.Where)
				}
				t.Logf("%d words, the least contrast is %.2f: %q", got.Labels, got.Least, got.Where)
			})
		}
	}
}
