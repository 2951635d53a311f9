package glass

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/testserver"
	"example.com/workbook/01-informers/internal/transport"
)

// traffic records everything that the API server sends.
type traffic struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *traffic) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.Write(b)
}

func (r *traffic) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.String()
}

type recordedBody struct {
	io.Reader
	io.Closer
}

func TestSecretDataIsNeverSent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const password, applied = "correct-horse-battery", "staple-of-the-annotation"
	encoded := base64.StdEncoding.EncodeToString([]byte(password))
	client, ns := testserver.Client(t), testserver.Namespace(t)
	secrets := client.CoreV1().Secrets(ns)
	_, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Data: map[string][]byte{"password": []byte(password)},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "applied", Labels: map[string]string{"kept": "yes"}, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"data":{"password":"` + applied + `"}}`,
		}},
		Data: map[string][]byte{"password": []byte(applied)},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	received := &traffic{}
	config := testserver.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = recordedBody{io.TeeReader(response.Body, received), response.Body}
			}
			return response, err
		})
	})
	s := open(t, "secrets", Options{Config: config, Namespace: ns, FailEvery: 1}).synced(t)
	messages := s.follow(t, s.glass.hub.formatCursor(0), "")
	patch := []byte(`{"stringData":{"password":"` + password + `-2"}}`)
	for _, name := range []string{"plain", "applied"} {
		_, err = secrets.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(secrets.Delete(t.Context(), "applied", metav1.DeleteOptions{})).To(Succeed())
	events, _ := until(t, messages, func(event Event) bool { return event.Stage == handmade.StageStore && event.Type == "delete" })

	sent, err := json.Marshal(events)
	g.Expect(err).NotTo(HaveOccurred())
	all := []string{string(sent)}
	for _, path := range []string{"/", "/state", "/object?key=" + ns + "/plain", "/object?key=" + ns + "/applied"} {
		_, body := s.request(t, http.MethodGet, path)
		all = append(all, body)
	}
	for _, path := range []string{"/pause", "/step", "/resume"} {
		_, body := s.request(t, http.MethodPost, path)
		all = append(all, body)
	}
	for _, body := range all {
		for _, word := range []string{password, encoded[:16], applied, base64.StdEncoding.EncodeToString([]byte(applied))[:16]} {
			g.Expect(body).NotTo(ContainSubstring(word))
		}
	}
	_, body := s.request(t, http.MethodGet, "/object?key="+ns+"/plain")
	g.Expect(body).To(And(ContainSubstring("name: plain"), ContainSubstring("# Only the metadata")))
	g.Expect(s.state(t).Resource.MetadataOnly).To(BeTrue())
	g.Expect(received.String()).To(ContainSubstring("plain"), "the traffic was recorded")
	g.Expect(received.String()).NotTo(ContainSubstring(encoded[:16]), "the API server does not send the data")
	g.Expect(received.String()).NotTo(ContainSubstring(password))
	for _, obj := range s.glass.informer.Store().List() {
		g.Expect(obj.(metav1.Object).GetAnnotations()).To(BeEmpty())
	}
}
