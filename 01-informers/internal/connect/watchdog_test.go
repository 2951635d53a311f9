package connect

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const idle = 3 * time.Minute

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// hang never ends by itself.
func hang(req *http.Request) { <-req.Context().Done() }

func TestIdleWatchEndsAWatchThatHangs(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"before the headers of the response": func(_ http.ResponseWriter, req *http.Request) { hang(req) },
		"before the first event": func(w http.ResponseWriter, req *http.Request) {
			flush(w)
			hang(req)
		},
		"in the middle of an event": func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprint(w, `{"type":"ADDED","obj`)
			flush(w)
			hang(req)
		},
		"compressed, between two events": func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			fmt.Fprint(compressed, `{"type":"ADDED","object":{}}`)
			compressed.Flush()
			flush(w)
			hang(req)
		},
	} {
		for _, http2 := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, HTTP2=%t", name, http2), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { endsAfterIdle(t, serve(t, http2, handler)) })
			})
		}
	}
}

func endsAfterIdle(t *testing.T, config *rest.Config) {
	t.Helper()
	g := NewWithT(t)
	config.Wrap(IdleWatch(idle))
	start := time.Now()
	body, err := get(t.Context(), t, carrier(t, config), "/api/v1/pods?watch=true")
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	g.Expect(err).To(MatchError(ErrIdleWatch))
	g.Expect(utilnet.IsTimeout(err)).To(BeTrue(), "client-go treats it as the end of a connection")
	g.Expect(time.Since(start)).To(Equal(idle))
}

// Nothing else is ended: each of these takes an hour.
func TestIdleWatchEndsNothingElse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path   string
		events int           // each of one byte
		pause  time.Duration // of the server, before each
		slow   time.Duration // of the reader, after each
	}{
		"a watch with a bookmark a minute":        {path: "/api/v1/pods?watch=true", events: 60, pause: time.Minute},
		"a reader that takes its time":            {path: "/api/v1/pods?watch=true", events: 6, slow: 10 * time.Minute},
		"a list":                                  {path: "/api/v1/pods", events: 1, pause: time.Hour},
		"a list that says that it is not a watch": {path: "/api/v1/pods?watch=false", events: 1, pause: time.Hour},
		"a list that says so with a number":       {path: "/api/v1/pods?watch=0", events: 1, pause: time.Hour},
		"an object of the name of the parameter":  {path: "/api/v1/namespaces/default/pods/watch", events: 1, pause: time.Hour},
		"a watch that ends without an error":      {path: "/api/v1/pods?watch=1", events: 30, pause: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				config := serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
					for range test.events {
						wait(test.pause)
						fmt.Fprint(w, "x")
						flush(w)
					}
				})
				config.Wrap(IdleWatch(idle))
				start := time.Now()
				body, err := get(t.Context(), t, carrier(t, config), test.path)
				g.Expect(err).NotTo(HaveOccurred())
				for range test.events {
					_, err := io.ReadFull(body, make([]byte, 1))
					g.Expect(err).NotTo(HaveOccurred())
					wait(test.slow)
				}
				_, err = body.Read(make([]byte, 1))
				g.Expect(err).To(Equal(io.EOF))
				g.Expect(time.Since(start)).To(BeNumerically(">=", time.Hour))
			})
		})
	}
}

func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// A watch that its caller ends leaves no timer and no goroutine behind: the bubble would wait for them.
func TestIdleWatchClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		config := serve(t, true, func(w http.ResponseWriter, req *http.Request) {
			flush(w)
			hang(req)
		})
		config.Wrap(IdleWatch(idle))
		body, err := get(t.Context(), t, carrier(t, config), "/api/v1/pods?watch=true")
		g.Expect(err).NotTo(HaveOccurred())
		ended := make(chan error)
		go func() {
			_, err := body.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		g.Expect(body.Close()).To(Succeed())
		g.Expect(<-ended).To(And(HaveOccurred(), Not(MatchError(ErrIdleWatch))))
	})
}

func TestLimitWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		config := serve(t, true, func(http.ResponseWriter, *http.Request) {})
		config.Wrap(IdleWatch(idle))
		config.Wrap(LimitWatches(time.Minute, 3))
		client := carrier(t, config)
		took := func(path string, times int) time.Duration {
			start := time.Now()
			for range times {
				_, err := get(t.Context(), t, client, path)
				g.Expect(err).NotTo(HaveOccurred())
			}
			return time.Since(start).Round(time.Second)
		}
		g.Expect(took("/api/v1/pods?watch=true", 3)).To(BeZero(), "the burst")
		g.Expect(took("/api/v1/pods?watch=true", 10)).To(Equal(10*time.Minute), "longer than a watch may be idle")
		g.Expect(took("/api/v1/nodes?watch=true", 3)).To(BeZero(), "another path has a burst of its own")
		g.Expect(took("/api/v1/pods", 100)).To(BeZero(), "a list")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := get(ctx, t, client, "/api/v1/pods?watch=true")
		g.Expect(err).To(MatchError(context.Canceled), "the wait ends with the context")
	})
}
