package binaries

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// goLog reads what `go build -v` writes, or -n: it counts modules that are downloaded and packages, and keeps the end of
// all else, which says why a build failed.
type goLog struct {
	// prefix marks the lines that name packages: there are blank ones and comments of a script around them with -n.
	prefix string

	mu                sync.Mutex
	modules, packages int
	finished          bool
	line, rest        []byte
}

func (l *goLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for part := range bytes.Lines(text) {
		l.line = append(l.line, part...)
		if bytes.HasSuffix(l.line, []byte("\n")) {
			l.take(string(l.line))
			l.line = l.line[:0]
		}
	}
	return len(text), nil
}

func (l *goLog) take(line string) {
	name, marked := strings.CutPrefix(strings.TrimSuffix(line, "\n"), l.prefix)
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		l.modules++
	case marked && name != "" && !strings.ContainsAny(name, " #:"):
		l.packages++
	default:
		l.rest = append(l.rest, line...)
		l.rest = l.rest[max(0, len(l.rest)-2000):]
	}
}

// done says that the command has ended.
func (l *goLog) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
}

func (l *goLog) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(append(l.rest, l.line...)))
}

// share says how far a build has got: built is that of -v, planned that of -n before it.
func share(planned, built *goLog) string {
	planned.mu.Lock()
	defer planned.mu.Unlock()
	built.mu.Lock()
	defer built.mu.Unlock()
	switch {
	case !planned.finished:
		return fmt.Sprintf("%d modules downloaded", planned.modules)
	case built.packages >= planned.packages:
		return "linking"
	}
	return fmt.Sprintf("%d of %d packages, %d %%", built.packages, planned.packages, 100*built.packages/planned.packages)
}

// tail is the end of a text.
func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-2000):]
}
