package foo

import (
	"regexp"
	"strings"
)

const (
	// maxConditionMessage bounds the message of a condition, in bytes. The API server accepts 32,768, but a status is read
	// and written as a whole.
	maxConditionMessage = 8192

	// maxEventNote is the most that the API server accepts as the text of an Event, in bytes
	// (k8s.io/kubernetes/pkg/apis/core/validation/events.go). An Event with more is lost.
	maxEventNote = 1024
)

// shorten cuts a text to so many bytes, between two characters.
func shorten(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

var (
	// address is an IPv4 or IPv6 address with a port; localEnd is one at the local end of a connection.
	address  = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d+`)
	localEnd = regexp.MustCompile(address.String() + `->`)
	duration = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s|m|h)(\d+(\.\d+)?(ms|s|m))*\b`)
)

// normalizeMessage replaces addresses, ports and durations, which differ each time a request fails: each new text in a
// condition would be a write.
func normalizeMessage(message string) string {
	message = localEnd.ReplaceAllString(message, "")
	message = address.ReplaceAllString(message, "ADDRESS")
	return duration.ReplaceAllString(message, "DURATION")
}
