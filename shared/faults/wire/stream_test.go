package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

func TestMain(m *testing.M) {
	// A busy machine needs more than the second that is the default.
	SetDefaultEventuallyTimeout(10 * time.Second)
	m.Run()
}

// watchTypes are the Content-Types of a watch, by the name of the encoding.
var watchTypes = map[string]string{
	"JSON":     "application/json",
	"protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
	"CBOR":     "application/cbor-seq",
}

// TestStreamFaults asserts what client-go reports for each fault, in each encoding that an API server may send a watch in.
// The third of the three events is never delivered.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	const ended, decoding, expired, open = "ended", "a decoding error", "410", "open"
	for _, test := range []struct {
		rule   Rule
		events int
		want   string
	}{
		{rule: Rule{Fault: GoneEvent}, events: 0, want: expired},
		{rule: Rule{Fault: Hang}, events: 0, want: open},
		{rule: Rule{Fault: Cut}, events: 0, want: ended},
		{rule: Rule{Fault: Cut, Whole: 2}, events: 2, want: ended},
		// client-go reports a stream that is reset as an event that it cannot decode.
		{rule: Rule{Fault: Break}, events: 0, want: decoding},
		{rule: Rule{Fault: Break, Whole: 2}, events: 2, want: decoding},
	} {
		for name, contentType := range watchTypes {
			t.Run(fmt.Sprintf("%s after %d in %s", test.rule.Fault, test.rule.Whole, name), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				proxy := newProxy(t, &rest.Config{Host: threeEvents(t, contentType)})
				injection := proxy.Inject(test.rule)
				watcher := startWatch(t, proxy)
				for n := range test.events {
					event := receive(t, watcher)
					g.Expect(event.Type).To(Equal(watch.Added))
					g.Expect(event.Object.(*corev1.ConfigMap).Name).To(Equal(fmt.Sprint("c", n)))
				}
				if test.want == open {
					g.Consistently(watcher.ResultChan()).WithTimeout(200 * time.Millisecond).ShouldNot(Receive())
					g.Expect(injection.Count()).To(Equal(1))
					return
				}
				end := receive(t, watcher)
				switch test.want {
				case ended:
					g.Expect(end).To(BeZero())
				case decoding:
					g.Expect(end.Type).To(Equal(watch.Error))
					g.Expect(apierrors.FromObject(end.Object)).To(MatchError(ContainSubstring("unable to decode an event from the watch stream")))
				case expired:
					g.Expect(end.Type).To(Equal(watch.Error))
					g.Expect(apierrors.IsResourceExpired(apierrors.FromObject(end.Object))).To(BeTrue())
					g.Expect(receive(t, watcher)).To(BeZero(), "the watch ends")
				}
				g.Expect(injection.Count()).To(Equal(1))
			})
		}
	}
}

// newProxy starts a proxy until the end of the test.
func newProxy(t *testing.T, config *rest.Config) *Proxy {
	t.Helper()
	proxy, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// threeEvents starts an API server whose response to every request is a watch with three events and no end.
func threeEvents(t *testing.T, contentType string) (address string) {
	t.Helper()
	info, err := mediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for n := range 3 {
			frame, err := addedEvent(info, fmt.Sprint("c", n))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = w.Write(frame)
			_ = http.NewResponseController(w).Flush()
		}
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// addedEvent returns the framed event of a ConfigMap that is longer than one read.
func addedEvent(info runtime.SerializerInfo, name string) ([]byte, error) {
	frame, err := encodeEvent(info, watch.Added, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"long": string(make([]byte, 10_000))},
	})
	if err != nil {
		return nil, err
	}
	return framed(info, frame)
}

// startWatch opens a watch with the parts that rest.Request.Watch uses, in any encoding.
func startWatch(t *testing.T, proxy *Proxy) watch.Interface {
	t.Helper()
	transport, err := rest.TransportFor(proxy.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.Config().Host+"/api/v1/configmaps?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(req) //nolint:bodyclose // watch.Interface.Stop does
	if err != nil {
		t.Fatal(err)
	}
	info, err := mediaType(response.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := streaming.NewDecoder(info.StreamSerializer.NewFrameReader(response.Body), info.StreamSerializer.Serializer)
	watcher := watch.NewStreamWatcher(
		restwatch.NewDecoder(decoder, info.Serializer),
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding"))
	t.Cleanup(watcher.Stop)
	return watcher
}

// receive returns the next event, or the zero value if the watch has ended.
func receive(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-watcher.ResultChan():
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("the watch delivers no event and does not end")
		return watch.Event{}
	}
}

// TestOpenStreamFaults asserts that a rule applies to an open watch, between two events.
func TestOpenStreamFaults(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	proxy := newProxy(t, &rest.Config{Host: threeEvents(t, watchTypes["protobuf"])})
	first, second := startWatch(t, proxy), startWatch(t, proxy)
	for range 3 {
		receive(t, first)
		receive(t, second)
	}
	injection := proxy.Inject(Rule{Fault: GoneEvent, Resource: "configmaps", Times: 1})
	var event watch.Event
	var open watch.Interface
	select {
	case event = <-first.ResultChan():
		open = second
	case event = <-second.ResultChan():
		open = first
	case <-time.After(30 * time.Second):
		t.Fatal("no watch ends")
	}
	g.Expect(apierrors.IsResourceExpired(apierrors.FromObject(event.Object))).To(BeTrue())
	g.Consistently(open.ResultChan()).WithTimeout(time.Second).ShouldNot(Receive(), "Times counts the requests of all watches")
	g.Expect(injection.Count()).To(Equal(1))

	proxy.Inject(Rule{Fault: InternalError, Verb: "watch"})
	for _, watcher := range []watch.Interface{first, second} {
		g.Eventually(watcher.ResultChan()).Should(BeClosed(), "the client has to send a request to get the 500")
	}
}

func TestReadFrameOfAnyLength(t *testing.T) {
	t.Parallel()
	for name, contentType := range watchTypes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			info, err := mediaType(contentType)
			g.Expect(err).NotTo(HaveOccurred())
			frame, err := addedEvent(info, "c")
			g.Expect(err).NotTo(HaveOccurred())
			out, in := io.Pipe()
			go func() {
				for range 2 {
					_, _ = in.Write(frame)
				}
				_, _ = in.Write(frame[:100])
				_ = in.Close()
			}()
			reader := info.StreamSerializer.NewFrameReader(out)
			for range 2 {
				event, err := readFrame(reader)
				g.Expect(err).NotTo(HaveOccurred())
				// The newline after JSON, the tag before CBOR and the length before protobuf are framing.
				g.Expect(len(event)).To(BeNumerically(">", len(frame)-5))
				g.Expect(bytes.HasSuffix(bytes.TrimSuffix(frame, []byte("\n")), event)).To(BeTrue())
			}
			_, err = readFrame(reader)
			g.Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		})
	}
}
