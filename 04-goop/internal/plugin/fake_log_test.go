package plugin

import (
	"bytes"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The logs of kubelets, simulated by a test.

func (f *fake) log(w http.ResponseWriter, r *http.Request) {
	if f.rejected(w, "get logs") {
		return
	}
	f.lock.Lock()
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	serve := f.logs[r.PathValue("name")]
	f.lock.Unlock()
	defer func() {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.open--
	}()
	if r.URL.Query().Get("container") != v1alpha1.WorkContainer || serve == nil {
		respond(w, 404, failure(404, metav1.StatusReasonNotFound, "pods not found", r.PathValue("name")))
		return
	}
	if r.URL.Query().Get("timestamps") == "true" {
		w = &stamper{ResponseWriter: w}
	}
	serve(w, r)
}

// stamper puts a timestamp before each line of a log, like a kubelet: the n-th line always has the n-th timestamp. Error
// responses have none.
type stamper struct {
	http.ResponseWriter
	line   int // the next one
	inLine bool
	failed bool
}

func (s *stamper) WriteHeader(code int) {
	s.failed = code != http.StatusOK
	s.ResponseWriter.WriteHeader(code)
}

func (s *stamper) Flush() { s.ResponseWriter.(http.Flusher).Flush() }

func (s *stamper) Write(text []byte) (int, error) {
	if s.failed {
		return s.ResponseWriter.Write(text)
	}
	var stamped []byte
	for line := range bytes.Lines(text) {
		if !s.inLine {
			stamped = time.Unix(1_800_000_000, int64(s.line)).UTC().AppendFormat(stamped, "2006-01-02T15:04:05.000000000Z07:00 ")
			s.line++
		}
		stamped = append(stamped, line...)
		s.inLine = !bytes.HasSuffix(line, []byte("\n"))
	}
	if _, err := s.ResponseWriter.Write(stamped); err != nil {
		return 0, err
	}
	return len(text), nil
}

// linesFrom serves a log that begins with its n-th line, because the earlier lines were rotated away.
func linesFrom(n int, log string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if stamped, ok := w.(*stamper); ok {
			stamped.line = n
		}
		_, _ = io.WriteString(w, log)
	}
}

// kubeletSays writes a message of the kubelet into a log, after the beginning of the response.
func kubeletSays(w http.ResponseWriter, words string) {
	if stamped, ok := w.(*stamper); ok {
		w = stamped.ResponseWriter
	}
	_, _ = io.WriteString(w, words)
}
