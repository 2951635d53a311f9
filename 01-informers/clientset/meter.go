package main

import (
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/transport"
)

// meter measures the responses to a client as they are on the wire, without the HTTP framing.
type meter struct {
	// contentType is from the header of the last response. bytes counts what was read of all bodies.
	contentType string
	bytes       int64
}

// attach returns a copy of config whose clients are measured.
func (m *meter) attach(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	// The Transport of net/http would request gzip by itself.
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil {
				return nil, err
			}
			m.contentType = response.Header.Get("Content-Type")
			response.Body = counted{response.Body, m}
			return response, nil
		})
	})
	return config
}

// counted adds the bytes that are read from a body to the meter.
type counted struct {
	io.ReadCloser
	meter *meter
}

func (c counted) Read(buffer []byte) (int, error) {
	n, err := c.ReadCloser.Read(buffer)
	c.meter.bytes += int64(n)
	return n, err
}
