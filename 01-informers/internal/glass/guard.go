package glass

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy lets the page use what this server serves, and nothing else.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guarded refuses what does not come from this server's own page. Whoever can reach the address may read the names of
// objects and drive the informer; other pages in the reader's browser may not.
func guarded(next http.Handler, anyHost bool, log *slog.Logger) http.Handler {
	// Sec-Fetch-Site, or where a browser does not send it Origin against Host. A request with neither is no
	// browser's.
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cache-Control", "no-store")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		if !anyHost && !loopbackHost(r.Host) {
			// DNS rebinding: a page elsewhere gave its own name this machine's address.
			log.Warn("refused: the Host header is not this machine", "host", r.Host, "path", r.URL.Path)
			http.Error(w, "this server answers only as localhost", http.StatusForbidden)
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			log.Warn("refused: the request comes from another page", "origin", r.Header.Get("Origin"), "path", r.URL.Path)
			http.Error(w, "this request comes from another page", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopbackHost tells whether a Host header can only mean this machine. The port may be another one than
// the server's, as behind a port that an editor or ssh forwards.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
