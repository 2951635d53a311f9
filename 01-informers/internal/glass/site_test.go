package glass

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/testserver"
)

const soon = 10 * time.Second

// site is a running glass informer, and a client of its page.
type site struct {
	*httptest.Server
	glass  *Server
	client kubernetes.Interface
	ns     string
}

func open(t *testing.T, resource string, options Options) *site {
	t.Helper()
	if options.Config == nil {
		options.Config = testserver.Config(t)
	}
	if options.Namespace == "" {
		options.Namespace = testserver.Namespace(t)
	}
	options.Workers = max(options.Workers, 1)
	var err error
	if options.Resource, err = Resolve(t.Context(), options.Config, resource); err != nil {
		t.Fatal(err)
	}
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Run(ctx) })
	s := &site{Server: httptest.NewServer(server), glass: server, client: testserver.Client(t), ns: options.Namespace}
	t.Cleanup(func() { stop(); running.Wait(); s.Close() })
	return s
}

func (s *site) request(t *testing.T, method, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func read[T any](t *testing.T, s *site, method, path string) T {
	t.Helper()
	var content T
	code, body := s.request(t, method, path)
	if code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, code, body)
	}
	if err := json.Unmarshal([]byte(body), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func (s *site) state(t *testing.T) State {
	t.Helper()
	return read[State](t, s, http.MethodGet, "/state")
}
func (s *site) post(t *testing.T, path string) Control {
	t.Helper()
	return read[Control](t, s, http.MethodPost, path)
}

func (s *site) synced(t *testing.T) *site {
	t.Helper()
	NewWithT(t).Eventually(func() bool { return s.state(t).Now.Synced }, soon).Should(BeTrue())
	return s
}

func (s *site) create(t *testing.T, name string) {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"colour": "red"}}
	if _, err := s.client.CoreV1().ConfigMaps(s.ns).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// message is one server-sent event.
type message struct {
	event, id string
	data      []byte
}

// follow connects to /events and returns its messages. The channel is closed when the connection ends.
func (s *site) follow(t *testing.T, after, lastEventID string) <-chan message {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/events?after="+url.QueryEscape(after), nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := s.Client().Do(request) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	messages := make(chan message, 1000)
	go func() {
		defer response.Body.Close()
		defer close(messages)
		readMessages(response.Body, func(one message) { messages <- one })
	}()
	return messages
}

// readMessages reads server-sent events to the end of the stream.
func readMessages(from io.Reader, each func(message)) {
	lines := bufio.NewReaderSize(from, 4096)
	var one message
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case len(line) == 0 && one.event != "":
			each(one)
			one = message{}
		case string(name) == "event":
			one.event = string(value)
		case string(name) == "id":
			one.id = string(value)
		case string(name) == "data":
			one.data = value
		}
	}
}

// until collects events until one matches.
func until(t *testing.T, messages <-chan message, matches func(Event) bool) ([]Event, string) {
	t.Helper()
	var events []Event
	for {
		select {
		case one, ok := <-messages:
			if !ok {
				t.Fatalf("the stream ended after %v", events)
			}
			var batch Batch
			if err := json.Unmarshal(one.data, &batch); err != nil || one.event != "batch" {
				t.Fatalf("%s %s: %v", one.event, one.data, err)
			}
			events = append(events, batch.Events...)
			if slices.ContainsFunc(batch.Events, matches) {
				return events, one.id
			}
		case <-time.After(soon):
			t.Fatalf("no event matches: %v", events)
		}
	}
}

func done(name string) func(Event) bool {
	return func(event Event) bool {
		return event.Stage == handmade.StageDone && strings.HasSuffix(event.Key, "/"+name)
	}
}
