package glass

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
)

const (
	// browserTimeout bounds what one test may take in the browser, however busy the machine is.
	browserTimeout = 2 * time.Minute
	// drawn is how long the page may take to show what happened.
	drawn = 20 * time.Second
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
		const missing = "no Chromium here; on Debian and Ubuntu, get it with: apt-get install chromium"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		// The sandbox needs privileges that root in a container does not have. No other pages are opened.
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// For the memory figures.
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("js-flags", "--expose-gc"),
	)
	// The context of the test ends before the browser is stopped.
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
	gomega.Gomega
	ctx context.Context
	// tolerated is what a message on the console may hold: a lost connection is reported there.
	tolerated string

	mu       sync.Mutex
	messages []string // on the console: messages, errors, policy violations
	requests []*network.Request
}

// open opens the page at an address in a new tab, after the actions in setup, and waits until it is drawn. When the test
// ends, the tab must have been silent and kept to itself.
func (b browser) open(t *testing.T, address string, setup ...action) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, browserTimeout)
	t.Cleanup(cancel)

	page := &tab{T: t, Gomega: gomega.NewWithT(t), ctx: ctx}
	if err := chromedp.Listen(ctx, page.listen); err != nil {
		t.Fatalf("listening to the tab: %v", err)
	}
	page.run(command(network.Enable, network.EnableParams{}))
	page.run(command(cdplog.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}))
	page.run(command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	page.run(laptop)
	page.run(setup...)
	page.run(chromedp.Navigate(address))
	t.Cleanup(func() { page.checkReports(address) })
	page.eventually(`document.documentElement.dataset.seq !== undefined`)
	return page
}

// listen keeps what a reader would find in the browser's developer tools.
func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request)
	case *cdplog.EventEntryAdded:
		p.messages = append(p.messages, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventConsoleAPICalled:
		p.messages = append(p.messages, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		p.messages = append(p.messages, e.ExceptionDetails.Text)
	}
}

// checkReports fails the test for any message and any request to elsewhere.
func (p *tab) checkReports(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.messages {
		if p.tolerated == "" || !strings.Contains(message, p.tolerated) {
			p.Errorf("the browser's console is not empty: %s", message)
		}
	}
	home, err := url.Parse(address)
	if err != nil {
		p.Fatal(err)
	}
	if len(p.requests) < 8 {
		p.Errorf("the browser made only %d requests, want the page, its styles, scripts and data", len(p.requests))
	}
	for _, request := range p.requests {
		if u, err := url.Parse(request.URL); err != nil || u.Host != home.Host {
			p.Errorf("the page loads %s, which is not on %s (%v)", request.URL, home.Host, err)
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

// evaluate runs a JavaScript expression in the tab; a promise is waited for. The page's own policy does not bind the
// developer tools.
func evaluate[T any](p *tab, expression string) T {
	p.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("evaluating %s: %v", expression, err)
	}
	return result
}

// eventually waits until an expression is true.
func (p *tab) eventually(expression string) {
	p.Helper()
	p.Eventually(func() bool { return evaluate[bool](p, expression) }, drawn, 50*time.Millisecond).
		Should(gomega.BeTrue(), func() string { return expression + "\n" + evaluate[string](p, `document.body.innerText`) })
}

// press presses keys, one after the other.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.run(chromedp.KeyEvent(key))
	}
}

// screenshot keeps what the tab shows as an artifact, in $ARTIFACTS or in _artifacts/01-informers at the root of
// the repository.
func (p *tab) screenshot(name string) {
	p.Helper()
	evaluate[int](p, `Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {}))).then((all) => all.length)`)
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatalf("taking a screenshot: %v", err)
	}
	folder := os.Getenv("ARTIFACTS")
	if folder == "" {
		folder = filepath.Join(repositoryRoot(p.T), "_artifacts", "01-informers")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
		p.Fatal(err)
	}
}

// repositoryRoot is the next folder upwards that holds .git; in a copy without one, it is the folder of the module.
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

// How the tab looks: a phone held upright, a small laptop, a reader who likes it dark.
var (
	phone  = chromedp.EmulateViewport(390, 844, chromedp.EmulatePortrait, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	laptop = chromedp.EmulateViewport(1280, 800)
	dark   = command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
)
