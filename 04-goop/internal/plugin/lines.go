package plugin

import (
	"bytes"
	"hash/fnv"
	"unicode/utf8"
)

const (
	// maxLine is the maximum length of a line. A longer one is shown in pieces, each as a line.
	maxLine = 64 << 10

	// maxChunk is the approximate size of a write.
	maxChunk = 64 << 10
)

// lineSink shows the output of workers while it is written, line by line, each with the worker's name in front.
type lineSink struct {
	console *console
	names   *names
	notices *notices
}

func (s *lineSink) open(at place) output { return &lineOutput{sink: s, at: at} }

func (s *lineSink) finish(summary) error { return nil }

// lineOutput splits the output of one worker into lines.
type lineOutput struct {
	sink *lineSink
	at   place
	rest []byte // of a line whose end has not come yet; at most maxLine
}

// Write accepts any piece of output. A failure to print it is an outputError.
func (o *lineOutput) Write(piece []byte) (int, error) {
	prefix := o.prefix()
	var chunk []byte
	for left := piece; len(left) > 0; {
		line, after, whole := bytes.Cut(left, []byte("\n"))
		room := maxLine - len(o.rest)
		long := len(line) > room
		if long {
			line, after, whole = left[:room], left[room:], false
		}
		left = after
		o.rest = append(o.rest, line...)
		switch {
		case whole:
			chunk = appendLine(chunk, prefix, o.sink.console.shown(o.rest))
			o.rest = o.rest[:0]
		case long:
			cut := wholeRunes(o.rest)
			chunk = appendLine(chunk, prefix, o.sink.console.shown(o.rest[:cut]))
			o.rest = append(o.rest[:0], o.rest[cut:]...)
		}
		if len(chunk) >= maxChunk {
			if _, err := o.sink.console.Write(chunk); err != nil {
				return 0, err
			}
			chunk = chunk[:0]
		}
	}
	if len(chunk) > 0 {
		if _, err := o.sink.console.Write(chunk); err != nil {
			return 0, err
		}
	}
	return len(piece), nil
}

// end prints the last line if it has no line end.
func (o *lineOutput) end(r result) error {
	if _, err := o.Write(r.instead()); err != nil {
		return err
	}
	if len(o.rest) > 0 {
		if _, err := o.Write([]byte("\n")); err != nil {
			return err
		}
	}
	o.rest = nil
	o.sink.notices.lost(r)
	return nil
}

func (o *lineOutput) prefix() string {
	name := o.sink.names.of(o.at)
	if !o.sink.console.colourOut {
		return name + ": "
	}
	// Six colours that are readable on light and dark backgrounds. A worker always has the same one.
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return "\x1b[3" + string(rune('1'+hash.Sum32()%6)) + "m" + name + ":" + plain + " "
}

func appendLine(chunk []byte, prefix string, line []byte) []byte {
	chunk = append(chunk, prefix...)
	chunk = append(chunk, line...)
	return append(chunk, '\n')
}

// wholeRunes returns the length of the text without an incomplete character at its end, which is up to three bytes less.
func wholeRunes(text []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				return len(text)
			}
			return at
		}
	}
	return len(text)
}
