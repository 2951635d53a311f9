package streaming

import (
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// stream is a streaming list whose events the check sends. All other requests reach the API server.
type stream struct {
	r       *run
	objects map[string]*corev1.ConfigMap
	writer  *io.PipeWriter
}

func beginSimulated(b *check.B, entry Entry) (*run, *stream) {
	r, begin := prepare(b, entry)
	reader, writer := io.Pipe()
	s := &stream{r: r, objects: map[string]*corev1.ConfigMap{}, writer: writer}
	for _, object := range r.List().Items {
		s.objects[object.Name] = &object
	}
	r.Wire.Before(func(request kube.Request, sent *http.Request) (*http.Response, error) {
		if !kube.Lists(request) || !kube.Watches(request) {
			return nil, nil
		}
		return kube.Response(sent, reader), nil
	})
	b.Cleanup(s.end)
	begin()
	return r, s
}

func (s *stream) added(name string) {
	s.r.b.Event("  the stream: ADDED %s", name)
	s.send(watch.Added, s.objects[name])
}

// bookmark sends a bookmark of now, and returns its resourceVersion.
func (s *stream) bookmark() string {
	s.r.b.Event("  the stream: BOOKMARK")
	meta := metav1.ObjectMeta{ResourceVersion: s.r.List().ResourceVersion}
	s.send(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: meta})
	return meta.ResourceVersion
}

func (s *stream) listEnds() {
	s.r.b.Event("  the stream: BOOKMARK with the annotation %s", metav1.InitialEventsAnnotationKey)
	s.send(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: s.r.List().ResourceVersion, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
}

func (s *stream) send(event watch.EventType, object *corev1.ConfigMap) {
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	line, err := json.Marshal(metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Object: object}})
	if err != nil {
		s.r.b.Fatalf("an event of the check: %v", err)
	}
	if _, err := s.writer.Write(append(line, '\n')); err != nil {
		s.r.b.Fatalf("the watch was ended by the program: %v", err)
	}
}

// end ends the watch.
func (s *stream) end() { s.writer.Close() }
