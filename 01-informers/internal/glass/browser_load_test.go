package glass

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// pageLoads is the load of keepsUp: with GLASS_LOAD=full 2,000 pods, and 200 changes a second for 15 s, which needs a machine
// without other load.
func pageLoads() load {
	if os.Getenv("GLASS_LOAD") == "full" {
		return load{pods: 2000, perSecond: 200, lasts: 15 * time.Second, minRate: 190, maxLag: time.Second}
	}
	return load{pods: 300, perSecond: 200, lasts: 3 * time.Second, minRate: 20, maxLag: 5 * time.Second}
}

// measures reports whether the limits of what is measured are asserted: MEASURE=1 says that the test runs alone.
func measures() bool { return os.Getenv("MEASURE") != "" }

const (
	// mostElements is how many elements the page may have, for any load.
	mostElements = 3500
	// mostGrowth is how much the page's memory may grow while it shows changes, in bytes.
	mostGrowth = 10 << 20
)

// keepsUp changes pods while a page shows them and follows one.
func (b browser) keepsUp(t *testing.T) {
	load := pageLoads()
	s := open(t, "pods", Options{Workers: 16, WorkTime: 50 * time.Millisecond, FailEvery: 50}).synced(t)
	makePods(t, s.client, s.ns, load.pods)
	page := b.open(t, s.URL)
	page.follow("store", "kept", "pod-")
	page.eventually(`document.querySelector('[data-stage="store"] .number').textContent.replace(",", "") === "` + strconv.Itoa(load.pods) + `"`)
	page.eventually(`document.querySelector('[data-stage="store"] .more').textContent.includes("more")`)
	memory := func() int {
		return evaluate[int](page, `(globalThis.gc?.(), performance.memory.usedJSHeapSize)`)
	}
	before := memory()

	rates := make(chan float64, 1)
	go func() { rates <- changePods(t, s.client, s.ns, load) }()
	var lags []time.Duration
	var behind []int
	var rate float64
	elements := 0
	for rate == 0 {
		select {
		case rate = <-rates:
		case <-time.After(200 * time.Millisecond):
		}
		// How many events the page is behind the server, and how long it takes to show them.
		want, began := int(s.glass.hub.snapshot().Seq), time.Now()
		seen := page.drawnSeq()
		behind = append(behind, max(0, want-seen))
		for seen < want && time.Since(began) < drawn {
			seen = page.drawnSeq()
		}
		lags = append(lags, time.Since(began))
		elements = max(elements, evaluate[int](page, `document.querySelectorAll("*").length`))
		if len(lags) == 10 {
			page.screenshot("glass-load.png")
		}
	}
	end := int(s.glass.hub.snapshot().Seq)
	page.eventually(`Number(document.documentElement.dataset.seq) >= ` + strconv.Itoa(end))
	after := memory()

	slices.Sort(lags)
	slices.Sort(behind)
	t.Logf("load       %d pods, %d changes a second for %s; %.0f a second were made", load.pods, load.perSecond, load.lasts, rate)
	t.Logf("lag        until drawn p50 %s, p99 %s, of %d samples; p50 %d events, most %d", quantile(lags, 50), quantile(lags, 99), len(lags), behind[len(behind)/2], behind[len(behind)-1])
	t.Logf("elements   %d at most", elements)
	t.Logf("memory     %.1f MB before, %.1f MB after", float64(before)/1e6, float64(after)/1e6)
	page.Expect(elements).To(And(BeNumerically(">", 300), BeNumerically("<", mostElements)))
	if measures() {
		page.Expect(rate).To(BeNumerically(">=", load.minRate))
		page.Expect(quantile(lags, 99)).To(BeNumerically("<", load.maxLag))
		page.Expect(after - before).To(BeNumerically("<", mostGrowth))
	}
	page.eventually(`document.querySelector("#warning").hidden`)
}

// drawnSeq is the last event that the page shows.
func (p *tab) drawnSeq() int {
	p.Helper()
	return evaluate[int](p, `Number(document.documentElement.dataset.seq)`)
}

// quantile returns the value that percent of all values do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
}
