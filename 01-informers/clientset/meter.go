package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// meter measures the responses to a client as they are on the wire: without the HTTP framing, and still compressed.
type meter struct {
	// gzip lets the server compress its responses.
	gzip bool

	// contentType and encoding are from the header of the last response. bytes counts what was read of all bodies.
	contentType, encoding string
	bytes                 int64
}

// attach returns a copy of config whose clients are measured.
func (m *meter) attach(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	// The Transport of net/http requests gzip by itself, and decompresses a body before the meter can count it.
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return measuring{m, next} })
	return config
}

type measuring struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m measuring) RoundTrip(request *http.Request) (*http.Response, error) {
	if m.gzip {
		// A RoundTripper must not change the request that it is given.
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := m.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	m.contentType = response.Header.Get("Content-Type")
	m.encoding = response.Header.Get("Content-Encoding")
	response.Body = counted{response.Body, m.meter}
	if m.encoding != "gzip" {
		return response, nil
	}
	decompressed, err := gzip.NewReader(response.Body)
	if err != nil {
		_ = response.Body.Close()
		return nil, fmt.Errorf("decompressing the response: %w", err)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{decompressed, response.Body}
	response.Header.Del("Content-Encoding")
	response.ContentLength = -1
	return response, nil
}

// counted adds the bytes that are read from a body to the meter.
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
