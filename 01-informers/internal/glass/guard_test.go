package glass

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, host string
		header       map[string]string
		anyHost      bool
		want         int
	}{
		"a browser that opens the page":      {method: "GET", host: "127.0.0.1:8088", header: map[string]string{"Sec-Fetch-Site": "none"}, want: 200},
		"the page itself":                    {method: "POST", host: "localhost:8088", header: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8088"}, want: 200},
		"an older browser, the page":         {method: "POST", host: "localhost:8088", header: map[string]string{"Origin": "http://localhost:8088"}, want: 200},
		"curl":                               {method: "POST", host: "127.0.0.1:8088", want: 200},
		"IPv6":                               {method: "POST", host: "[::1]:8088", want: 200},
		"a forwarded port":                   {method: "POST", host: "localhost", want: 200},
		"another page":                       {method: "POST", host: "localhost:8088", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, want: 403},
		"another page on the same machine":   {method: "POST", host: "localhost:8088", header: map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"}, want: 403},
		"another page, an older browser":     {method: "POST", host: "localhost:8088", header: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"a page without an origin":           {method: "POST", host: "localhost:8088", header: map[string]string{"Origin": "null"}, want: 403},
		"DNS rebinding, reading":             {method: "GET", host: "evil.example:8088", want: 403},
		"DNS rebinding, pausing":             {method: "POST", host: "evil.example:8088", header: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example:8088"}, want: 403},
		"a name with localhost as prefix":    {method: "GET", host: "localhost.evil.example", want: 403},
		"a name with 127.0.0.1 as prefix":    {method: "GET", host: "127.0.0.1.evil.example", want: 403},
		"another address":                    {method: "GET", host: "10.0.0.1:8088", want: 403},
		"no host":                            {method: "GET", host: "", want: 403},
		"any host, if the server accepts it": {method: "GET", host: "workstation:8088", anyHost: true, want: 200},
		"any host, another page":             {method: "POST", host: "workstation:8088", anyHost: true, header: map[string]string{"Origin": "http://evil.example"}, want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			reached := false
			handler := guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }), test.anyHost, slog.New(slog.DiscardHandler))
			request := httptest.NewRequestWithContext(t.Context(), test.method, "/step", nil)
			request.Host = test.host
			for key, value := range test.header {
				request.Header.Set(key, value)
			}
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, request)
			g.Expect(response.Code).To(Equal(test.want))
			g.Expect(reached).To(Equal(test.want == 200))
			for _, header := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
				g.Expect(response.Header().Get(header)).NotTo(BeEmpty(), header)
			}
			g.Expect(response.Header().Get("Cache-Control")).To(Equal("no-store"))
			g.Expect(response.Header().Get("Access-Control-Allow-Origin")).To(BeEmpty())
		})
	}
}
