package connect

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/handmade"
)

// api is an API server with one ConfigMap that changes after the first watch has begun, without an event on that watch.
type api struct {
	watches atomic.Int32
	// hang is called by the first watch.
	hang func(req *http.Request)
}

func (a *api) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if req.URL.Query().Get("watch") != "true" {
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	first := a.watches.Add(1) == 1
	if first {
		send(w, watch.Added, configMap("1", "before"))
	} else {
		send(w, watch.Added, configMap("2", "after"))
	}
	send(w, watch.Bookmark, configMap("2", ""))
	if first {
		a.hang(req)
	}
	for req.Context().Err() == nil {
		select {
		case <-time.After(time.Minute):
			send(w, watch.Bookmark, configMap("3", ""))
		case <-req.Context().Done():
		}
	}
}

func configMap(version, value string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", ResourceVersion: version},
		Data:       map[string]string{"value": value},
	}
	if value == "" {
		c.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return c
}

func send(w http.ResponseWriter, kind watch.EventType, object runtime.Object) {
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
	flush(w)
}

// TestReflectorOnAHangingWatch runs a reflector for an hour whose first watch hangs.
func TestReflectorOnAHangingWatch(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for name, test := range map[string]struct {
		http2, deadConnection bool
		idle                  time.Duration
		behind                time.Duration // for how long
	}{
		"HTTP/2":                             {http2: true, behind: never},
		"HTTP/1.1":                           {behind: never},
		"HTTP/2, with IdleWatch":             {http2: true, idle: idle, behind: idle},
		"HTTP/1.1, with IdleWatch":           {idle: idle, behind: idle},
		"HTTP/2, and the connection is dead": {http2: true, deadConnection: true, behind: (30 + 15) * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				server := &api{hang: hang}
				config := serve(t, test.http2, server.ServeHTTP)
				if test.deadConnection {
					server.hang = func(req *http.Request) {
						wait(time.Millisecond) // until what was sent is received
						dead(req)
						hang(req)
					}
				}
				config.Wrap(IdleWatch(test.idle))
				value := reflect(t, config)

				synctest.Wait()
				g.Expect(value()).To(Equal("before"))
				wait(test.behind - time.Second)
				synctest.Wait()
				g.Expect(value()).To(Equal("before"), "too early")
				g.Expect(server.watches.Load()).To(BeEquivalentTo(1))
				wait(3 * time.Second) // the second, and a pause of up to 1.6 s before a reflector begins again
				synctest.Wait()
				want, watches := "after", 2
				if test.behind == never {
					want, watches = "before", 1
				}
				g.Expect(value()).To(Equal(want))
				g.Expect(server.watches.Load()).To(BeEquivalentTo(watches))
				t.Logf("%s: behind for %s, %d watches", name, test.behind, watches)
			})
		})
	}
}

// reflect runs a reflector on ConfigMaps, and returns a function that reads the value in its store.
func reflect(t *testing.T, config *rest.Config) func() string {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	source := handmade.ListWatch(clients.CoreV1().ConfigMaps("default"))
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(source, &corev1.ConfigMap{}, store, cache.ReflectorOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		reflector.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		utilnet.CloseIdleConnectionsFor(client.Transport)
	})
	return func() string {
		object, _, err := store.GetByKey("default/c")
		if c, ok := object.(*corev1.ConfigMap); ok && err == nil {
			return c.Data["value"]
		}
		return ""
	}
}
