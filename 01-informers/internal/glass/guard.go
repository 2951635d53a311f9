package glass

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy allows the page to load from this server only.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guarded rejects requests that do not come from this server's page. A user who can connect to the address can read the
// names of objects and pause the informer; other pages in that user's browser cannot.
func guarded(next http.Handler, anyHost bool, log *slog.Logger) http.Handler {
	// It checks Sec-Fetch-Site or, if a browser does not send it, compares Origin with Host. No browser sends a request
	// without both.
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
		if !anyHost && !LoopbackHost(r.Host) {
			// DNS rebinding: another site's name resolves to this machine's address.
			log.Warn("rejected: the Host header is not this machine", "host", r.Host, "path", r.URL.Path)
			http.Error(w, "this server accepts requests to localhost only", http.StatusForbidden)
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			log.Warn("rejected: the request comes from another page", "origin", r.Header.Get("Origin"), "path", r.URL.Path)
			http.Error(w, "this request comes from another page", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// LoopbackHost reports whether a Host header, or an address, can only mean this machine. The port may differ from the server's:
// an editor or ssh may forward it.
func LoopbackHost(host string) bool {
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
