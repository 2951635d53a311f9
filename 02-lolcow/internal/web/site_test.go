package web

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"example.com/workbook/02-lolcow/internal/cow"
)

// greetings are those that a careless server would change, or obey.
var greetings = map[string]string{
	"short":    "Hello, world!",
	"html":     `<script>document.title = "moo"</script><img src=x onerror="document.title='moo'"> &amp; </p>`,
	"shell":    "$(reboot); `id` | cat > /dev/null && echo $HOME ${PATH} \\n %s $$",
	"quotes":   `"double" 'single' “curly” \"escaped\" {{.Greeting}}`,
	"emoji":    "🐄 moo 👩‍👩‍👧‍👦 🇨🇭 👍🏽 ❤️ 牛は言う שלום",
	"newlines": "one\n\n  indented  twice\n\tand a tab",
	"leading":  "-rf --help",
	"long":     strings.Repeat("Moo, said the cow, and looked up at the cat. ", 23)[:1024],
}

// newSite is NewSite for tests.
func newSite(t *testing.T, greeting string) *Site {
	t.Helper()
	site, err := NewSite(greeting, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// request asks site for path; headers are pairs of name and value.
func request(t *testing.T, site http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	site.ServeHTTP(recorder, r)
	return recorder
}

func TestIndexChoosesTheForm(t *testing.T) {
	const (
		curl    = "curl/8.5.0"
		firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
		html    = "text/html; charset=utf-8"
		text    = "text/plain; charset=utf-8"
	)
	tests := map[string]struct{ agent, accept, want string }{
		"a browser":                     {firefox, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", html},
		"curl":                          {curl, "*/*", text},
		"curl without Accept":           {curl, "", text},
		"curl that asks for HTML":       {curl, "text/html", html},
		"no headers at all":             {"", "", html},
		"anything":                      {"", "*/*", html},
		"plain text":                    {"", "text/plain", text},
		"plain text in a browser":       {firefox, "text/plain, */*;q=0.5", text},
		"text preferred by weight":      {"", "text/html;q=0.5, text/plain;q=0.9", text},
		"HTML preferred by weight":      {curl, "text/html;q=0.9, text/plain;q=0.5", html},
		"anything but HTML":             {firefox, "text/html;q=0, */*", text},
		"the specific range decides":    {firefox, "text/*;q=0.9, text/html;q=0.2", text},
		"another program named curling": {"curling/1.0", "*/*", html},
		"neither":                       {"", "image/png", html},
		"a broken header":               {"", ";;q=,/,text/plain;q=x", html},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			headers := []string{"User-Agent", test.agent}
			if test.accept != "" {
				headers = append(headers, "Accept", test.accept)
			}
			response := request(t, newSite(t, "moo"), http.MethodGet, "/", headers...)
			if got := response.Header().Get("Content-Type"); got != test.want {
				t.Errorf("Content-Type = %q, want %q", got, test.want)
			}
			if got := response.Header().Get("Vary"); got != "Accept, User-Agent" {
				t.Errorf("Vary = %q", got)
			}
			if got := response.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control = %q", got)
			}
		})
	}
}

func TestTextIsTheCow(t *testing.T) {
	const greeting = "<b>moo</b>\x1b[31m"
	got := request(t, newSite(t, greeting), http.MethodGet, "/", "Accept", "text/plain").Body.String()
	if got != cow.Say(greeting) {
		t.Errorf("the text is\n%s", got)
	}
	if !strings.Contains(got, "< <b>moo</b>␛[31m >") {
		t.Errorf("the text does not show the greeting as it was written:\n%s", got)
	}
}

func TestPageEscapesTheGreeting(t *testing.T) {
	tests := map[string]struct{ greeting, want string }{
		"HTML":               {`</p><script>alert("1")</script>&`, "&lt;/p&gt;&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;&amp;"},
		"control characters": {"a\x1b\u202eb", "a␛[U&#43;202E]b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			page := request(t, newSite(t, test.greeting), http.MethodGet, "/").Body.String()
			_, rest, _ := strings.Cut(page, `<p id="greeting" dir="auto">`)
			if got, _, _ := strings.Cut(rest, "</p>"); got != test.want {
				t.Errorf("the page's source says %q, want %q", got, test.want)
			}
		})
	}
}

// The policy forbids inline styles and scripts. A browser would only ignore
// them, so the page must have none.
func TestPageHasNothingInline(t *testing.T) {
	got := request(t, newSite(t, "moo"), http.MethodGet, "/").Body.String()
	if found := regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son\w+=|javascript:|//`).FindString(got); found != "" {
		t.Errorf("the page has %q", found)
	}
}

func TestRoutes(t *testing.T) {
	tests := []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/", 200},
		{http.MethodHead, "/", 200},
		{http.MethodPost, "/", 405},
		{http.MethodPut, "/", 405},
		{http.MethodDelete, "/healthz", 405},
		{http.MethodOptions, "/", 405},
		{http.MethodGet, "/healthz", 200},
		{http.MethodHead, "/healthz", 200},
		{http.MethodGet, "/readyz", 200},
		{http.MethodGet, "/static/style.css", 200},
		{http.MethodPost, "/static/style.css", 405},
		{http.MethodGet, "/static/", 404},
		{http.MethodGet, "/static/none.css", 404},
		{http.MethodGet, "/page/index.html", 404},
		{http.MethodGet, "/favicon.ico", 404},
		{http.MethodGet, "/moo", 404},
	}
	site := newSite(t, "moo")
	for _, test := range tests {
		t.Run(fmt.Sprint(test.method, " ", test.path), func(t *testing.T) {
			response := request(t, site, test.method, test.path)
			if response.Code != test.want {
				t.Errorf("status %d, want %d", response.Code, test.want)
			}
			if test.want == 405 && response.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow = %q", response.Header().Get("Allow"))
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": policy,
				"X-Content-Type-Options":  "nosniff",
				"X-Frame-Options":         "DENY",
				"Referrer-Policy":         "no-referrer",
			} {
				if got := response.Header().Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestAssetsAreAskedForAgainOnlyWhenChanged(t *testing.T) {
	site := newSite(t, "moo")
	first := request(t, site, http.MethodGet, "/static/trail.svg")
	if got := first.Header().Get("Content-Type"); got != "image/svg+xml" {
		t.Errorf("Content-Type = %q", got)
	}
	tag := first.Header().Get("ETag")
	if second := request(t, site, http.MethodGet, "/static/trail.svg", "If-None-Match", tag); second.Code != http.StatusNotModified {
		t.Errorf("status %d with the ETag %s, want 304", second.Code, tag)
	}
}

func TestDrainTurnsReadinessOff(t *testing.T) {
	site := newSite(t, "moo")
	site.Drain()
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/": 200} {
		if got := request(t, site, http.MethodGet, path).Code; got != want {
			t.Errorf("%s responds with %d while draining, want %d", path, got, want)
		}
	}
}

func TestRequestsAreLogged(t *testing.T) {
	var out bytes.Buffer
	site, err := NewSite("moo", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	request(t, site, http.MethodGet, "/moo%0a%1b[31m")
	request(t, site, http.MethodGet, "/healthz")
	line := out.String()
	for _, want := range []string{"level=INFO", "msg=request", "method=GET", `path="/moo\n\x1b[31m"`, "status=404", "remote="} {
		if !strings.Contains(line, want) {
			t.Errorf("the log lacks %s: %s", want, line)
		}
	}
	if n := strings.Count(line, "\n"); n != 1 {
		t.Errorf("%d lines logged, want one, and none for the probe: %s", n, line)
	}
}
