package glass

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/testserver"
)

// load is the load of a test, and its limits.
type load struct {
	pods, perSecond int
	lasts           time.Duration
	limits          Limits
	// The limits are asserted only if MEASURE is set: other tests that run at the same time take what they need.
	minRate float64
	maxLag  time.Duration
	maxHeap float64 // growth, MB
}

func loads() load {
	limits := DefaultLimits()
	if os.Getenv("GLASS_LOAD") == "full" {
		return load{pods: 2000, perSecond: 200, lasts: 30 * time.Second, limits: limits, minRate: 190, maxLag: time.Second, maxHeap: 32}
	}
	limits.Ring = 2048 // the shorter run overwrites it too
	return load{pods: 300, perSecond: 200, lasts: 3 * time.Second, limits: limits, minRate: 50, maxLag: 5 * time.Second, maxHeap: 64}
}

func (l load) changes() int { return int(l.lasts.Seconds()) * l.perSecond }

// TestItKeepsUp changes pods, 200 times a second, with two pages connected: one that reads, and one that does not.
// GLASS_LOAD=full makes it 2,000 pods for 30 s, and the limits strict: with MEASURE=1, on a machine that does nothing else.
func TestItKeepsUp(t *testing.T) {
	g := NewWithT(t)
	load := loads()
	client, ns := testserver.Client(t), testserver.Namespace(t)
	makePods(t, client, ns, load.pods)

	config := testserver.Config(t)
	found, err := Resolve(t.Context(), config, "pods")
	g.Expect(err).NotTo(HaveOccurred())
	server, err := New(Options{Config: config, Resource: found, Namespace: ns, Workers: 16, WorkTime: 50 * time.Millisecond, Limits: load.limits})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { server.Run(ctx) })
	g.Eventually(func() Counts { return server.hub.snapshot().Counts }, time.Minute).Should(Equal(Counts{Store: load.pods}))

	pages := map[string]string{"fast": listen(t, server, 0), "slow": listen(t, server, 32<<10)}
	fast := &reader{start: server.hub.start, began: map[string]int64{}}
	begin := server.hub.snapshot().Seq
	running.Go(func() { fast.follow(ctx, pages["fast"], server.hub.formatCursor(begin), nil) })
	slow := &reader{start: server.hub.start}
	reads := make(chan struct{})
	running.Go(func() { slow.follow(ctx, pages["slow"], server.hub.formatCursor(begin), reads) })
	g.Eventually(func() int { return len(server.clients) }, soon).Should(Equal(2))

	before := heapMB()
	watched := func() uint64 { return server.hub.snapshot().Totals[handmade.StageWatch] }
	all := watched() + uint64(load.changes())
	rate := changePods(t, client, ns, load)
	// The queue is also empty while changes are on their way from the API server.
	g.Eventually(watched, time.Minute).Should(Equal(all))
	g.Eventually(func() Counts { return server.hub.snapshot().Counts }, time.Minute).Should(Equal(Counts{Store: load.pods}), "all keys are processed")
	after := heapMB()
	end := server.hub.snapshot().Seq
	close(reads)
	g.Eventually(func() uint64 { return fast.at.Load() }, time.Minute).Should(BeNumerically(">=", end))
	g.Eventually(func() uint64 { return slow.at.Load() }, time.Minute).Should(BeNumerically(">=", end))

	lastStage, toPage := fast.lags()
	t.Logf("load           %d pods, %d changes a second for %s", load.pods, load.perSecond, load.lasts)
	t.Logf("rate           %.0f changes a second, %d events (%.0f a second)", rate, end-begin, float64(end-begin)/load.lasts.Seconds())
	t.Logf("to last stage  p50 %s, p99 %s, of %d items that were processed (the work takes 50ms of it)", quantile(lastStage, 50), quantile(lastStage, 99), len(lastStage))
	t.Logf("to the page    p50 %s, p99 %s, in %d messages", quantile(toPage, 50), quantile(toPage, 99), fast.messages)
	t.Logf("dropped        fast page %d, slow page %d of %d, in the ring %d", fast.dropped.Load(), slow.dropped.Load(), end-begin, load.limits.Ring)
	t.Logf("heap           %.1f MB before, %.1f MB after, process and test together", before, after)

	stop()
	running.Wait()
	for name, client := range map[string]*reader{"fast": fast, "slow": slow} {
		g.Expect(client.received.Load()+client.dropped.Load()).To(Equal(client.at.Load()-begin), "%s: every event was received or reported as dropped", name)
	}
	g.Expect(slow.dropped.Load()).To(BeNumerically(">", 0))
	g.Expect(server.hub.snapshot().Dropped).To(BeNumerically(">=", fast.dropped.Load()+slow.dropped.Load()))
	g.Expect(server.hub.state().Items).To(HaveLen(min(load.limits.Items, len(server.hub.items))))
	if measures() {
		g.Expect(rate).To(BeNumerically(">=", load.minRate))
		g.Expect(quantile(lastStage, 99)).To(BeNumerically("<", load.maxLag))
		g.Expect(quantile(toPage, 99)).To(BeNumerically("<", load.maxLag))
		g.Expect(after - before).To(BeNumerically("<", load.maxHeap))
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%04d", i) }

// makePods creates pods that no scheduler schedules.
func makePods(t *testing.T, client kubernetes.Interface, ns string, count int) {
	t.Helper()
	workqueue.ParallelizeUntil(t.Context(), 16, count, func(i int) {
		_, err := client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: podName(i)},
			Spec: corev1.PodSpec{
				SchedulerName: "none",
				Containers:    []corev1.Container{{Name: "none", Image: "example.com/none"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("creating a pod: %v", err)
		}
	})
}

// changePods changes one pod after the other, and returns the rate in changes a second.
func changePods(t *testing.T, client kubernetes.Interface, ns string, load load) float64 {
	t.Helper()
	count := load.changes()
	began := time.Now()
	ticks := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range ticks {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"change":"%d"}}}`, i)
				// 7 has no common divisor with the number of pods, so that all pods change.
				_, err := client.CoreV1().Pods(ns).Patch(t.Context(), podName(i*7%load.pods), types.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil {
					t.Errorf("changing a pod: %v", err)
				}
			}
		})
	}
	for i := range count {
		<-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(load.perSecond))))
		ticks <- i
	}
	close(ticks)
	all.Wait()
	return float64(count) / time.Since(began).Seconds()
}

// smallBuffers limits how much the kernel buffers for a client that does not read.
type smallBuffers struct {
	net.Listener
	bytes int
}

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && l.bytes > 0 {
		_ = tcp.SetWriteBuffer(l.bytes)
	}
	return conn, err
}

// listen serves on a port of its own. bytes is how much the kernel buffers for a client; 0: no limit.
func listen(t *testing.T, handler http.Handler, bytes int) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(smallBuffers{listener, bytes}) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// reader is a page: it reads events, and reconnects when the connection ends, as browsers do.
type reader struct {
	start                 time.Time
	at, received, dropped atomic.Uint64
	messages              int

	mu     sync.Mutex
	began  map[string]int64 // item → the time of its watch event, ms; nil: not measured
	stages []time.Duration
	page   []time.Duration
}

// follow reads until ctx ends. With a channel, it reads only after that is closed.
func (r *reader) follow(ctx context.Context, address, cursor string, reads <-chan struct{}) {
	dialer := net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && reads != nil {
			_ = tcp.SetReadBuffer(32 << 10)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/events?after="+cursor, nil)
		if err != nil {
			return
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			continue
		}
		if reads != nil {
			select {
			case <-reads:
			case <-ctx.Done():
			}
		}
		readMessages(response.Body, func(one message) { r.take(one); cursor = one.id })
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

func (r *reader) take(one message) {
	switch one.event {
	case "dropped":
		var lost Dropped
		if json.Unmarshal(one.data, &lost) == nil {
			r.dropped.Add(lost.Count)
			r.at.Store(lost.To)
		}
	case "batch":
		var batch Batch
		if json.Unmarshal(one.data, &batch) == nil {
			r.measure(batch.Events)
			r.messages++
			r.received.Add(uint64(len(batch.Events)))
			if last := len(batch.Events); last > 0 {
				r.at.Store(batch.Events[last-1].Seq)
			}
		}
	}
}

func (r *reader) measure(events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began == nil {
		return
	}
	for _, event := range events {
		r.page = append(r.page, time.Since(r.start.Add(time.Duration(event.Time)*time.Millisecond)))
		switch began, ok := r.began[event.Item]; {
		case event.Stage == handmade.StageWatch:
			r.began[event.Item] = event.Time
		case event.Stage == handmade.StageDone && ok:
			r.stages = append(r.stages, time.Duration(event.Time-began)*time.Millisecond)
			delete(r.began, event.Item)
		}
	}
}

func (r *reader) lags() (lastStage, toPage []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.stages)), slices.Sorted(slices.Values(r.page))
}

func heapMB() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / 1e6
}
