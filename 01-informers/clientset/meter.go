package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// meter weighs the answers to one client, as they come over the wire: after the HTTP framing, before any
// decompression.
type meter struct {
	// gzip lets the server compress its answers.
	gzip bool

	// contentType and encoding are those of the last answer; bytes is the length of the bodies of all,
	// as far as they were read.
	contentType, encoding string
	bytes                 int64
}

// attach returns a copy of config whose clients are weighed.
func (m *meter) attach(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	// The Transport of net/http asks for gzip by itself, and inflates before anybody can count.
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return weighing{m, next} })
	return config
}

type weighing struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w weighing) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.gzip {
		// A RoundTripper must not change the request that it is given.
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	w.contentType = response.Header.Get("Content-Type")
	w.encoding = response.Header.Get("Content-Encoding")
	response.Body = counted{response.Body, w.meter}
	if w.encoding != "gzip" {
		return response, nil
	}
	inflated, err := gzip.NewReader(response.Body)
	if err != nil {
		_ = response.Body.Close()
		return nil, fmt.Errorf("inflating the answer: %w", err)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{inflated, response.Body}
	response.Header.Del("Content-Encoding")
	response.ContentLength = -1
	return response, nil
}

// counted adds what is read from a body to the meter.
type counted struct {
	io.ReadCloser
	meter *meter
}

// Read implements io.Reader.
func (c counted) Read(buffer []byte) (int, error) {
	n, err := c.ReadCloser.Read(buffer)
	c.meter.bytes += int64(n)
	return n, err
}
