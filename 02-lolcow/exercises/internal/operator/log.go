package operator

import (
	"encoding/json"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"example.com/workbook/shared/exercise/check"
)

// Log keeps the lines that a manager, its controllers and the reader's code log, as they are stored by programs that search.
type Log struct {
	b *check.B

	mu    sync.Mutex
	lines []Line
}

// Line is a line of a log. All of its keys have their values in Fields.
type Line struct {
	Message string
	// Failure says that it was logged as an error, and Error is that error.
	Failure bool
	Error   string
	Fields  map[string]any
}

// NewLog returns an empty log, and the logger that writes to it.
func NewLog(b *check.B) (*Log, logr.Logger) {
	l := &Log{b: b}
	return l, funcr.NewJSON(l.add, funcr.Options{Verbosity: 1})
}

func (l *Log) add(text string) {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		l.b.Event("  a line of the log that is no JSON: %s", text)
		return
	}
	line := Line{Fields: fields}
	line.Message, _ = fields["msg"].(string)
	// Only lines of errors have no level.
	_, info := fields["level"]
	line.Failure = !info
	line.Error, _ = fields["error"].(string)
	for _, key := range []string{"msg", "level", "logger", "error"} {
		delete(fields, key)
	}
	if line.Failure {
		l.b.Event("  the log: %s: %s", line.Message, line.Error)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// Lines are those so far.
func (l *Log) Lines() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// Failures are the lines of errors so far.
func (l *Log) Failures() []Line {
	var failures []Line
	for _, line := range l.Lines() {
		if line.Failure {
			failures = append(failures, line)
		}
	}
	return failures
}
