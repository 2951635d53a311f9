package exitcode

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// creations reads the whole response to a creation before the reader's code gets any of it. Otherwise the context could end
// when the Goop is there, and Run does not know it.
type creations struct {
	next http.RoundTripper
	done *atomic.Bool
}

func (c creations) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	c.done.Store(response.StatusCode == http.StatusCreated)
	return response, nil
}
