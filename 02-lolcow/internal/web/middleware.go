package web

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// policy lets the page load its own style and pictures, and nothing else: no
// script runs, whatever a greeting holds.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// secured sets the headers that narrow what a browser does with any response.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// logged writes one line per request; probes come every few seconds, so they
// are logged at debug level only.
func logged(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		level := slog.LevelInfo
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			level = slog.LevelDebug
		}
		log.Log(r.Context(), level, "request",
			"method", r.Method, "path", r.URL.Path, "status", recorder.status, "remote", r.RemoteAddr)
	})
}

// statusRecorder remembers the status code for the log.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the code and passes it on.
func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// wantsText reports whether the client prefers plain text: by its Accept header,
// or, if that gives text/plain and text/html the same quality, by being curl.
func wantsText(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	text, html := quality(accept, "text/plain"), quality(accept, "text/html")
	if text != html {
		return text > html
	}
	return strings.HasPrefix(r.UserAgent(), "curl/")
}

// quality returns the quality value, from 0 to 1, that an Accept header gives to
// the media type want. The most specific range that matches decides (RFC 9110,
// 12.5.1). Without the header every type has 1; a range that cannot be parsed is
// ignored.
func quality(accept, want string) float64 {
	if accept == "" {
		return 1
	}
	family, _, _ := strings.Cut(want, "/")
	best, q := 0, 0.0
	for clause := range strings.SplitSeq(accept, ",") {
		mediaRange, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		specific := map[string]int{"*/*": 1, family + "/*": 2, want: 3}[mediaRange]
		if specific <= best {
			continue
		}
		best, q = specific, 1
		if weight, given := params["q"]; given {
			if q, err = strconv.ParseFloat(weight, 64); err != nil {
				q = 0
			}
		}
	}
	return q
}

// entityTag names content, so that a browser can ask whether it has changed.
func entityTag(content []byte) string {
	return fmt.Sprintf(`"%x"`, sha256.Sum256(content))
}
