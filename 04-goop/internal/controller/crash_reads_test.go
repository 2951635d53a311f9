package controller

import (
	"bytes"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// withRepeatedReads is a configuration whose clients share what they have read, see reads.
func withRepeatedReads(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	known := &reads{known: map[string]cachedResponse{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		known.next = next
		return known
	})
	return config
}

// reads repeats the response to a read if nothing was written since. In a story one goroutine reads and writes,
// and no controller of Kubernetes runs, so the API server would respond with the same. A story has some hundred such reads.
type reads struct {
	next  http.RoundTripper
	known map[string]cachedResponse
}

type cachedResponse struct {
	response http.Response
	body     []byte
}

func (r *reads) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		clear(r.known)
		return r.next.RoundTrip(req)
	}
	key := req.URL.String() + " " + req.Header.Get("Accept")
	if known, found := r.known[key]; found {
		return known.again(req), nil
	}
	response, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	got := cachedResponse{response: *response, body: body}
	r.known[key] = got
	return got.again(req), nil
}

func (c cachedResponse) again(req *http.Request) *http.Response {
	response := c.response
	response.Request, response.Body = req, io.NopCloser(bytes.NewReader(c.body))
	return &response
}
