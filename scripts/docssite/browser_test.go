package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// pageTimeout bounds what one page may take in the browser, however busy the machine is.
	pageTimeout = time.Minute
	// drawn is how long a page may take to become what was asked for.
	drawn = 30 * time.Second
)

// browser is a running Chromium.
type browser struct{ ctx context.Context }

// startBrowser starts a headless Chromium that ends with the test. Without a Chromium the test is skipped; in CI it fails.
func startBrowser(t *testing.T) browser {
	t.Helper()
	var chromium string
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		const missing = "the site is NOT TESTED: no Chromium here; on Debian and Ubuntu, get it with: apt-get install chromium"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		// The sandbox needs capabilities that root in a container lacks; all pages are ours.
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	// The test's own context ends before the browser is asked to.
	allocator, release := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(release)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", chromium, err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("stopping %s: %v", chromium, err)
		}
	})
	return browser{ctx}
}

// action is something that the browser does, with no result.
type action = chromedp.Action[chromedp.Void]

// tab is a reader's tab, and what the browser reported about the page in it.
type tab struct {
	ctx  context.Context
	home string // the address of the site, with a slash at its end

	mu       sync.Mutex
	messages []string // on the console
	requests []string // URLs
}

// serveSite serves the site in a folder of a server: it has to work in any.
func serveSite(t *testing.T, dir string) (home string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/some/folder/", http.StripPrefix("/some/folder/", http.FileServer(http.Dir(dir))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/some/folder/"
}

// open opens an empty tab for the site at home, after the actions in setup.
func (b browser) open(t *testing.T, home string, setup ...action) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	p := &tab{ctx: ctx, home: home}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatalf("listening to the tab: %v", err)
	}
	p.run(t, devtools(network.Enable, network.EnableParams{}))
	p.run(t, devtools(cdplog.Enable, cdp.Empty{}), devtools(runtime.Enable, cdp.Empty{}))
	p.run(t, setup...)
	return p
}

// listen keeps what a reader would find in the browser's developer tools.
func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *cdplog.EventEntryAdded:
		p.messages = append(p.messages, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventConsoleAPICalled:
		p.messages = append(p.messages, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		p.messages = append(p.messages, e.ExceptionDetails.Text)
	}
}

// visit opens a page of the site, and waits until its diagrams are drawn. When the test ends, the page must have been
// silent and have loaded nothing from elsewhere.
func (p *tab) visit(t *testing.T, address string) {
	t.Helper()
	p.mu.Lock()
	p.messages, p.requests = nil, nil
	p.mu.Unlock()
	t.Cleanup(func() { p.checkReports(t) })
	p.run(t, chromedp.Navigate(p.home+strings.TrimPrefix(address, "/")))
	p.eventually(t, `document.readyState === "complete" && [...document.querySelectorAll(".diagram")].every((one) => one.dataset.drawn)`)
}

func (p *tab) checkReports(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.messages {
		t.Errorf("the browser's console is not empty: %s", message)
	}
	if len(p.requests) < 4 {
		t.Errorf("the browser asked only for %q, want the page, its styles and scripts", p.requests)
	}
	home, err := url.Parse(p.home)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range p.requests {
		u, err := url.Parse(request)
		if err != nil || u.Scheme != "data" && (u.Host != home.Host || u.Scheme != home.Scheme) {
			t.Errorf("the page loads %s, which is not of %s (%v)", request, p.home, err)
		}
	}
}

// devtools is the action that sends one command of the DevTools protocol.
func devtools[P any](command cdp.Command[P, cdp.Empty], params P) action {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, command, params)
		return chromedp.Void{}, err
	}
}

// run does the actions in the tab.
func (p *tab) run(t *testing.T, actions ...action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("driving the browser: %v", err)
	}
}

// evaluate runs a JavaScript expression in the tab; a promise is waited for.
func evaluate[R any](t *testing.T, p *tab, expression string) R {
	t.Helper()
	result, err := try[R](p, expression)
	if err != nil {
		t.Fatalf("evaluating %s: %v", expression, err)
	}
	return result
}

func try[R any](p *tab, expression string) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[R](expression, chromedp.EvalAwaitPromise))
}

// eventually waits until an expression is true.
func (p *tab) eventually(t *testing.T, expression string) {
	t.Helper()
	for deadline := time.After(drawn); ; {
		isTrue, err := try[bool](p, expression)
		// Between two pages the browser returns an error: no page is there to ask.
		rejected := new(cdproto.Error)
		switch {
		case err != nil && !errors.As(err, &rejected):
			t.Fatalf("evaluating %s: %v", expression, err)
		case isTrue:
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not so after %s (%v): %s\nat %s:\n%s", drawn, err, expression, evaluate[string](t, p, `location.href`), evaluate[string](t, p, `document.body.innerText.slice(0, 2000)`))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// screenshot keeps what the tab shows as an artifact, in $ARTIFACTS or beside the site.
func (p *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatalf("taking a screenshot: %v", err)
	}
	dir := os.Getenv("ARTIFACTS")
	if dir == "" {
		dir = filepath.Join(siteDir(t), "..", "site-test")
	}
	if err := writeFile(filepath.Join(dir, name), picture); err != nil {
		t.Fatal(err)
	}
}

// How the tab looks: a phone held upright, a small laptop, a reader who likes it dark or light.
var (
	phone   = chromedp.EmulateViewport(375, 812, chromedp.EmulatePortrait, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	desktop = chromedp.EmulateViewport(1280, 800)
)

func prefers(scheme string) action {
	return devtools(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}
