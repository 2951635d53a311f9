package faults

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
	"k8s.io/klog/v2"
)

// watchTypes are the Content-Types of a watch, by the name of what the objects are written in.
var watchTypes = map[string]string{
	"JSON":     "application/json",
	"protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
	"CBOR":     "application/cbor-seq",
}

// TestStreamFaults asserts what client-go makes of each fault, in each of the formats that an API server
// writes a watch in. The third of the three events never comes.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	const ended, decoding, expired, open = "ended", "a decoding error", "410", "open"
	for _, test := range []struct {
		rule   Rule
		events int
		then   string
	}{
		{rule: Rule{Fault: GoneEvent}, events: 0, then: expired},
		{rule: Rule{Fault: Hang}, events: 0, then: open},
		{rule: Rule{Fault: Cut}, events: 0, then: ended},
		{rule: Rule{Fault: Cut, Whole: 2}, events: 2, then: ended},
		// client-go takes a stream that is broken off for an event that it cannot read.
		{rule: Rule{Fault: Break}, events: 0, then: decoding},
		{rule: Rule{Fault: Break, Whole: 2}, events: 2, then: decoding},
	} {
		for name, contentType := range watchTypes {
			t.Run(fmt.Sprintf("%s after %d in %s", test.rule.Fault, test.rule.Whole, name), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				server := newServer(t, &rest.Config{Host: threeEvents(t, contentType)})
				failure := server.Fail(test.rule)
				watcher := startWatch(t, server)
				for n := range test.events {
					event := receive(t, watcher)
					g.Expect(event.Type).To(Equal(watch.Added))
					g.Expect(event.Object.(*corev1.ConfigMap).Name).To(Equal(fmt.Sprint("c", n)))
				}
				if test.then == open {
					g.Consistently(watcher.ResultChan()).WithTimeout(200 * time.Millisecond).ShouldNot(Receive())
					g.Expect(failure.Struck()).To(Equal(1))
					return
				}
				end := receive(t, watcher)
				switch test.then {
				case ended:
					g.Expect(end).To(BeZero())
				case decoding:
					g.Expect(end.Type).To(Equal(watch.Error))
					g.Expect(apierrors.FromObject(end.Object)).To(MatchError(ContainSubstring("unable to decode an event from the watch stream")))
				case expired:
					g.Expect(end.Type).To(Equal(watch.Error))
					g.Expect(apierrors.IsResourceExpired(apierrors.FromObject(end.Object))).To(BeTrue())
					g.Expect(receive(t, watcher)).To(BeZero(), "and it ends")
				}
				g.Expect(failure.Struck()).To(Equal(1))
			})
		}
	}
}

// newServer starts a proxy for a test.
func newServer(t *testing.T, config *rest.Config) *Server {
	t.Helper()
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// threeEvents is an API server that answers everything with a watch of three ConfigMaps and no end.
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

func addedEvent(info runtime.SerializerInfo, name string) ([]byte, error) {
	object, err := runtime.Encode(info.Serializer, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"more than one read": string(make([]byte, 10_000))},
	})
	if err != nil {
		return nil, err
	}
	event := &metav1.WatchEvent{Type: string(watch.Added), Object: runtime.RawExtension{Raw: object}}
	frame, err := runtime.Encode(info.StreamSerializer.Serializer, event)
	if err != nil {
		return nil, err
	}
	return framed(info, frame)
}

// startWatch reads a watch with the parts that rest.Request.Watch puts together, for any format.
func startWatch(t *testing.T, server *Server) watch.Interface {
	t.Helper()
	carrier, err := rest.TransportFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Config().Host+"/api/v1/configmaps?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := carrier.RoundTrip(req) //nolint:bodyclose // watch.Interface.Stop does
	if err != nil {
		t.Fatal(err)
	}
	info, err := mediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := streaming.NewDecoder(info.StreamSerializer.NewFrameReader(answer.Body), info.StreamSerializer.Serializer)
	watcher := watch.NewStreamWatcherWithLogger(klog.FromContext(t.Context()),
		restwatch.NewDecoder(decoder, info.Serializer),
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding"))
	t.Cleanup(watcher.Stop)
	return watcher
}

// receive returns the next event, or the zero value where the watch has ended.
func receive(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-watcher.ResultChan():
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came on the watch, not even its end")
		return watch.Event{}
	}
}

// TestLiveStreamFaults asserts that a rule strikes a watch that is under way, between two events.
func TestLiveStreamFaults(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := newServer(t, &rest.Config{Host: threeEvents(t, watchTypes["protobuf"])})
	struck, spared := startWatch(t, server), startWatch(t, server)
	for range 3 {
		receive(t, struck)
		receive(t, spared)
	}
	failure := server.Fail(Rule{Fault: GoneEvent, Resource: "configmaps", Times: 1})
	var ended, open int
	for _, watcher := range []watch.Interface{struck, spared} {
		select {
		case event := <-watcher.ResultChan():
			g.Expect(apierrors.IsResourceExpired(apierrors.FromObject(event.Object))).To(BeTrue())
			ended++
		case <-time.After(time.Second):
			open++
		}
	}
	g.Expect([]int{ended, open, failure.Struck()}).To(Equal([]int{1, 1, 1}), "Times is for all watches together")

	server.Fail(Rule{Fault: InternalError, Verb: "watch"})
	for _, watcher := range []watch.Interface{struck, spared} {
		g.Eventually(watcher.ResultChan()).Should(BeClosed(), "its client has to ask, to be answered with 500")
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
				whole, err := readFrame(reader)
				g.Expect(err).NotTo(HaveOccurred())
				// The newline after JSON, the tag before CBOR and the length before protobuf are framing.
				g.Expect(len(whole)).To(BeNumerically(">", len(frame)-5))
				g.Expect(bytes.HasSuffix(bytes.TrimSuffix(frame, []byte("\n")), whole)).To(BeTrue())
			}
			_, err = readFrame(reader)
			g.Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		})
	}
}
