package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserTimeout bounds what one page may take in the browser, however busy the
// machine is.
const browserTimeout = 60 * time.Second

// browser is a running Chromium.
type browser struct{ ctx context.Context }

// startBrowser starts a headless Chromium that ends with the test. Without a
// Chromium the test is skipped; in CI it fails.
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
		const missing = "no Chromium here; on Debian and Ubuntu, get it with: apt-get install chromium"
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

// tab is one page in the browser, and what the browser reported about it.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string // on the console: messages, errors, policy violations
	requests []string // URLs
}

// open serves greeting and opens it in a new tab, after the actions in
// setup. When the test ends, the tab must have been silent and kept to itself.
func (b browser) open(t *testing.T, greeting string, setup ...action) *tab {
	t.Helper()
	server := httptest.NewServer(newSite(t, greeting))
	t.Cleanup(server.Close)
	ctx, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, browserTimeout)
	t.Cleanup(cancel)

	page := &tab{T: t, ctx: ctx}
	if err := chromedp.Listen(ctx, page.listen); err != nil {
		t.Fatalf("listening to the tab: %v", err)
	}
	page.run(command(network.Enable, network.EnableParams{}))
	page.run(command(cdplog.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}))
	page.run(setup...)
	page.run(chromedp.Navigate(server.URL))
	t.Cleanup(func() { page.checkReports(server.URL) })
	return page
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

// checkReports fails the test for any message and any request to elsewhere.
func (p *tab) checkReports(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.messages) > 0 {
		p.Errorf("the browser's console is not empty:\n%s", strings.Join(p.messages, "\n"))
	}
	home, err := url.Parse(server)
	if err != nil {
		p.Fatal(err)
	}
	if len(p.requests) < 5 {
		p.Errorf("the browser asked only for %q, want the page, its styles and pictures", p.requests)
	}
	for _, request := range p.requests {
		if u, err := url.Parse(request); err != nil || u.Host != home.Host {
			p.Errorf("the page loads %s, which is not on %s (%v)", request, home.Host, err)
		}
	}
}

// command is the action that sends one command of the DevTools protocol.
func command[P any](command cdp.Command[P, cdp.Empty], params P) action {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, command, params)
		return chromedp.Void{}, err
	}
}

// run does the actions in the tab.
func (p *tab) run(actions ...action) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatalf("driving the browser: %v", err)
	}
}

// evaluate runs a JavaScript expression in the tab; a promise is waited for.
// The page's own policy does not bind the developer tools.
func evaluate[T any](p *tab, expression string) T {
	p.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("evaluating %s: %v", expression, err)
	}
	return result
}

// catPositions returns where the cat was in each of 20 consecutive frames.
func (p *tab) catPositions() map[string]int {
	p.Helper()
	frames := evaluate[[]string](p, `new Promise(done => {
		const seen = [];
		const look = () => {
			const box = document.getElementById("cat").getBoundingClientRect();
			seen.push(box.x + "," + box.y);
			seen.length < 20 ? requestAnimationFrame(look) : done(seen);
		};
		requestAnimationFrame(look);
	})`)
	positions := map[string]int{}
	for _, position := range frames {
		positions[position]++
	}
	return positions
}

// screenshot keeps what the tab shows as an artifact, in $ARTIFACTS or in
// _artifacts at the root of the repository.
func (p *tab) screenshot(name string) {
	p.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatalf("taking a screenshot: %v", err)
	}
	folder := os.Getenv("ARTIFACTS")
	if folder == "" {
		folder = filepath.Join(repositoryRoot(p.T), "_artifacts")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
		p.Fatal(err)
	}
}

// repositoryRoot is the next folder upwards that holds .git; in a copy without
// one, it is the folder of the module.
func repositoryRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module := folder
	for {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return folder
		}
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			module = folder
		}
		if folder == filepath.Dir(folder) {
			return module
		}
		folder = filepath.Dir(folder)
	}
}

// The tab's size: a phone held upright, and a small laptop.
var (
	phone   = chromedp.EmulateViewport(390, 844, chromedp.EmulatePortrait, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	desktop = chromedp.EmulateViewport(1280, 800)
)
