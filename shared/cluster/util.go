package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// hash is a short fingerprint of what a cluster is made from.
func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// splitYAML returns the documents of a YAML text.
func splitYAML(text string) []string {
	var out []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(document) != "" {
			out = append(out, document)
		}
	}
	return out
}
