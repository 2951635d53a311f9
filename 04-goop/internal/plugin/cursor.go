package plugin

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"example.com/workbook/04-goop/internal/worker"
)

const (
	// maxWords is how many bytes of a kubelet's message in place of a log are kept.
	maxWords = 1 << 10

	// maxStamp is more than the length of any timestamp.
	maxStamp = 40
)

// cursor is the position up to which a log has been read. After a stream broke off, the new stream starts at the
// beginning of the log.
type cursor struct {
	instance string    // of the container: each has its own log
	first    time.Time // the timestamp of its first line, which identifies the log
	last     time.Time // the timestamp of the last line that was read
	until    time.Time // lines up to this one were read before an older part of the log was rotated away
	read     int64     // with timestamps
	inLine   bool      // what was read ends within a line
	before   bool      // something was read of an earlier instance
	end      []byte    // of what was read, as much as a record has of it
}

// any reports whether anything was read.
func (c *cursor) any() bool { return c.before || c.read > 0 }

// lacks reports whether the log lacks the end of the output, which is in the record.
func (c *cursor) lacks(record *worker.Record) bool {
	read := strings.ToValidUTF8(string(c.end), "\ufffd")
	return record != nil && !strings.HasSuffix(strings.TrimSuffix(read, "\n"), strings.TrimSuffix(record.Output, "\n"))
}

// sureOverlap is how many bytes at the end of a log must equal the beginning of the record's output to count as an
// overlap. A shorter overlap may be a coincidence, unless it is everything that was read.
const sureOverlap = 64

// rest returns the record's output after the end of what was read. It is empty if the log does not end within the
// record's output.
func (c *cursor) rest(record *worker.Record) string {
	if record == nil {
		return ""
	}
	read, output := strings.ToValidUTF8(string(c.end), "\ufffd"), record.Output
	for both := min(len(read), len(output)); both > 0 && both >= min(sureOverlap, len(read)); both-- {
		if strings.HasSuffix(read, output[:both]) {
			return output[both:]
		}
	}
	return ""
}

// keep keeps the end of what was read.
func (c *cursor) keep(fresh []byte) {
	c.end = append(c.end, fresh[max(0, len(fresh)-worker.MaxOutput):]...)
	c.end = append(c.end[:0], c.end[max(0, len(c.end)-worker.MaxOutput):]...)
}

// stamped is one stream of a log. Each line of output begins with a timestamp. Anything else is a message of the kubelet,
// after the beginning of its response.
type stamped struct {
	*cursor
	skip    int64 // how much of the stream was read before
	at      int64 // how much of it has come
	head    []byte
	line    bool // the timestamp of a line has come, and not its end
	known   bool // this line was read before an older part of the log was rotated away
	message bool // from head on it is a message of the kubelet
	lost    bool // the log begins after what was read before
	out     []byte
}

// fresh processes the next piece of the stream, and returns the new output in it.
func (s *stamped) fresh(piece []byte) []byte {
	s.out = s.out[:0]
	for len(piece) > 0 {
		switch {
		case s.message:
			s.head = append(s.head, piece[:min(len(piece), max(0, maxWords-len(s.head)))]...)
			return s.out
		case !s.line:
			piece = s.begin(piece)
		default:
			n := len(piece)
			if end := bytes.IndexByte(piece, '\n'); end >= 0 {
				n, s.line = end+1, false
			}
			if !s.known {
				s.out = append(s.out, piece[min(int64(n), max(0, s.skip-s.at)):n]...)
			}
			s.advance(n)
			piece = piece[n:]
		}
	}
	return s.out
}

// begin processes the timestamp of a line, or a part of it, and returns the rest of the piece.
func (s *stamped) begin(piece []byte) []byte {
	stamp, rest, whole := bytes.Cut(piece, []byte(" "))
	s.head = append(s.head, stamp...)
	if !whole && len(s.head) < maxStamp {
		return nil
	}
	when, err := time.Parse(time.RFC3339Nano, string(s.head))
	if err != nil {
		s.message = true
		s.head = s.head[:len(s.head)-len(stamp)]
		return piece
	}
	if s.at == 0 {
		s.open(when)
	}
	s.known = !when.After(s.until)
	if when.After(s.last) {
		s.last = when
	}
	s.line = true
	s.advance(len(s.head) + 1)
	s.head = s.head[:0]
	return rest
}

// open compares the first timestamp with that of the last stream. If they differ, it is another log.
func (s *stamped) open(first time.Time) {
	if s.read > 0 && !first.Equal(s.first) {
		s.lost, s.until = first.After(s.last), s.last
		if s.inLine {
			// The rest of that line is not in the new log. A line of that time is shown whole, in a line of its own.
			s.out, s.until = append(s.out, '\n'), s.last.Add(-1)
		}
		s.skip, s.read = 0, 0
	}
	s.first = first
}

// advance advances the position.
func (s *stamped) advance(n int) {
	s.at += int64(n)
	if s.at >= s.read {
		s.read, s.inLine = s.at, s.line
	}
}

// words returns the kubelet's message as an error.
func (s *stamped) words() error {
	if words := strings.TrimSpace(string(s.head)); words != "" {
		return fmt.Errorf("the node says: %s", words)
	}
	return nil
}
