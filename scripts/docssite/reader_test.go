package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestSearch types words that a chapter has, and goes where the search leads.
func TestSearch(t *testing.T) {
	home := serveSite(t, siteDir(t))
	chromium := startBrowser(t)
	for name, size := range map[string]action{"desktop": desktop, "phone": phone} {
		for words, want := range map[string]string{
			"raw controller custom": "/10-a-raw-controller.html", // its title
			"handleAnyWatch":        "/10-a-raw-controller.html", // in its text only
		} {
			t.Run(name+" "+words, func(t *testing.T) {
				p := chromium.open(t, home, size)
				p.visit(t, "/index.html")
				p.run(t, chromedp.Focus(`input[type=search]`), chromedp.KeyEvent(words))
				p.eventually(t, `document.querySelectorAll("#found a").length > 0`)
				hit := fmt.Sprintf(`[...document.querySelectorAll("#found a")].find((one) => one.pathname.endsWith(%q))`, want)
				p.eventually(t, fmt.Sprintf(`(%[1]s !== undefined) && (%[1]s.click(), true)`, hit))
				p.eventually(t, fmt.Sprintf(`location.pathname.endsWith(%q) && document.readyState === "complete"`, want))
				first := strings.ToLower(strings.Fields(words)[0])
				if !evaluate[bool](t, p, fmt.Sprintf(`document.querySelector("article").innerText.toLowerCase().includes(%q)`, first)) {
					t.Errorf("the chapter does not have the word %s", first)
				}
			})
		}
		t.Run(name+" nothing", func(t *testing.T) {
			p := chromium.open(t, home, size)
			p.visit(t, "/index.html")
			p.run(t, chromedp.Focus(`input[type=search]`), chromedp.KeyEvent("qwrtzpsd"))
			p.eventually(t, `document.querySelector("#found").innerText === "Nothing found"`)
		})
	}
}

// luminances are those of the page's ground and of the least legible words on it, by the rules of WCAG 2.
const leastContrast = `(() => {
	const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
	const luminance = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
	const ground = (one) => { for (; one; one = one.parentElement) { const colour = numbers(getComputedStyle(one).backgroundColor);
		if (colour.length < 4 || colour[3] > 0.5) return colour; } return [255, 255, 255]; };
	let least = 100, where = "";
	const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (words.nextNode()) {
		const one = words.currentNode.parentElement;
		if (!words.currentNode.data.trim() || one.closest("svg, script, style, .anchor") || !one.checkVisibility({ opacityProperty: true })) continue;
		const pair = [luminance(numbers(getComputedStyle(one).color)), luminance(ground(one))].sort((a, b) => b - a);
		const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
		if (contrast < least) { least = contrast; where = one.outerHTML.slice(0, 80); }
	}
	return { least, where, ground: luminance(ground(document.body)), drawn: document.querySelector(".diagram")?.dataset.drawn ?? "" };
})()`

// TestSchemes looks whether every word is legible, for those who like it light and for those who like it dark, and takes
// pictures of it.
func TestSchemes(t *testing.T) {
	home := serveSite(t, siteDir(t))
	chromium := startBrowser(t)
	pages := []string{"/index.html", "/10-a-raw-controller.html", "/05-list-and-watch-by-hand.html", "/repository/01-informers/internal/raw/loop.go.html"}
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
					}](t, p, leastContrast)
					if got.Least < 4.5 {
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

// TestFromTheDisk opens the site without a server: it has to work there too, the search included.
func TestFromTheDisk(t *testing.T) {
	dir, err := filepath.Abs(siteDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := startBrowser(t).open(t, "file://"+filepath.ToSlash(dir)+"/", desktop)
	p.visit(t, "/10-a-raw-controller.html")
	if drawn := evaluate[int](t, p, `document.querySelectorAll(".diagram svg").length`); drawn == 0 {
		t.Error("no diagram is drawn")
	}
	p.run(t, chromedp.Focus(`input[type=search]`), chromedp.KeyEvent("conditions"))
	p.eventually(t, `document.querySelectorAll("#found a").length > 0`)
}
