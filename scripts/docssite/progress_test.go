package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

const noted = `{"version":1,"current":"11b","exercises":{
	"11a":{"done":"2026-01-02T03:04:05Z","checks":3},"04a":{"done":"2026-01-02T03:04:05Z"},"11b":{"checks":2,"hints":1}}}`

func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ notes, want string }{
		"nothing noted yet":    {"", `{"done":[]}`},
		"some are done":        {noted, `{"done":["04a","11a"]}`},
		"half a file":          {`{"version":1,`, `unexpected end of JSON input"}`},
		"another format":       {`{"version":2}`, `it has format 2, and this site knows format 1"}`},
		"an end of the script": {`{"version":1,"exercises":{"</script>":{"done":"2026-01-02T03:04:05Z"}}}`, `{"done":["\u003c/script\u003e"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := t.TempDir()
			if tt.notes != "" {
				note(t, repo, tt.notes)
			}
			response := httptest.NewRecorder()
			siteHandler(t.TempDir(), repo).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/progress.js", nil))
			got := response.Body.String()
			if !strings.HasPrefix(got, "window.progress = {") || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if cached := response.Header().Get("Cache-Control"); cached != "no-store" {
				t.Errorf("a browser may keep it: %q", cached)
			}
		})
	}
}

// note writes what make learn has noted.
func note(t *testing.T, repo, notes string) {
	t.Helper()
	if err := writeFile(filepath.Join(repo, ".learn", "progress.json"), []byte(notes)); err != nil {
		t.Fatal(err)
	}
}

// TestStartPageShowsProgress opens the start page as make docs-serve serves it, before and after an exercise is done, and
// as it is without that server.
func TestStartPageShowsProgress(t *testing.T) {
	dir := siteDir(t)
	exercises, err := filepath.Glob("../../0[1-4]-*/exercises/*/exercise.json")
	if err != nil || len(exercises) == 0 {
		t.Fatalf("no exercises (%v)", err)
	}
	repo := t.TempDir()
	server := httptest.NewServer(siteHandler(dir, repo))
	t.Cleanup(server.Close)
	chromium := startBrowser(t)
	p := chromium.open(t, server.URL+"/", phone)
	p.visit(t, "/index.html")
	if listed := evaluate[int](t, p, `document.querySelectorAll("[data-exercise]").length`); listed != len(exercises) {
		t.Errorf("%d exercises are listed, and there are %d", listed, len(exercises))
	}
	p.eventually(t, fmt.Sprintf(`document.querySelector("#progress").innerText.startsWith("0 of %d are done")`, len(exercises)))

	note(t, repo, noted)
	p.visit(t, "/index.html")
	p.eventually(t, fmt.Sprintf(`document.querySelector("#progress").innerText.startsWith("2 of %d are done")`, len(exercises)))
	if done := evaluate[string](t, p, `[...document.querySelectorAll("li.done")].map((one) => one.innerText).join(", ")`); done != "04a A minimal scheme done, 11a An empty folder done" {
		t.Errorf("done are %q", done)
	}
	evaluate[bool](t, p, `(document.querySelector("#exercises").scrollIntoView(), true)`)
	p.screenshot(t, "progress.png")

	note(t, repo, "{")
	p.visit(t, "/index.html")
	p.eventually(t, `document.querySelector("#progress").innerText.startsWith("The progress cannot be shown.")`)

	p = chromium.open(t, serveSite(t, dir), desktop)
	p.visit(t, "/index.html")
	p.eventually(t, `document.querySelector("#progress").hidden && document.querySelectorAll("li.done").length === 0`)
}
