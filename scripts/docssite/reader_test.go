package main

import (
	"fmt"
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
			"too old resource":      "/troubleshooting.html",     // an error, of which a reader has the text
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
