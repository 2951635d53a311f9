package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Replay is what a failure leaves as a file: the schedule, and what happened.
type Replay struct {
	Schedule
	Failure  *Failure `json:"failure,omitempty"`
	Timeline []string `json:"timeline,omitempty"`
}

// code is a sum of the program that runs: of the operator, of the suite and of this package.
var code = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
})

// write writes it into a folder of the test, and returns the path.
func (r Replay) write(dir string) (string, error) {
	r.Code = code()
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path, err := filepath.Abs(filepath.Join(dir, "replay-"+hex.EncodeToString(sum[:])[:8]+".json"))
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, content, 0o600)
}

// readReplay reads one. A schedule alone is one too.
func readReplay(path string) (Replay, error) {
	var r Replay
	content, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

// firstDifference returns where two timelines part, counted from 1; 0 if they do not.
func firstDifference(one, other []string) int {
	for i := range max(len(one), len(other)) {
		if i >= len(one) || i >= len(other) || one[i] != other[i] {
			return i + 1
		}
	}
	return 0
}

// picture is a timeline to be read, with the first step that is not in the undisturbed one marked.
func picture(timeline, undisturbed []string) string {
	parts := firstDifference(timeline, undisturbed)
	var text strings.Builder
	for i, line := range timeline {
		mark := "  "
		if i+1 == parts && undisturbed != nil {
			mark = "≠ "
		}
		if strings.Contains(line, "fault") || strings.HasPrefix(line, "ALARM") || strings.Contains(line, "the process ends") {
			mark = "! "
		}
		fmt.Fprintf(&text, "%4d %s%s\n", i+1, mark, line)
	}
	return text.String()
}
