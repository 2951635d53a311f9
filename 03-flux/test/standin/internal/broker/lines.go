package broker

import (
	"bytes"
	"slices"
)

// maxLine is how much of a line is buffered so that it is sent as a whole.
const maxLine = 64 << 10

// lines passes on what is written to it in whole lines, so that lines of several tasks do not mix.
type lines struct {
	send func([]byte)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if len(l.rest)-whole > maxLine {
		whole = len(l.rest)
	}
	if whole > 0 {
		l.send(slices.Clone(l.rest[:whole]))
		l.rest = append(l.rest[:0], l.rest[whole:]...)
	}
	return len(p), nil
}

// flush sends the rest, which has no newline.
func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.send(l.rest)
		l.rest = nil
	}
}
