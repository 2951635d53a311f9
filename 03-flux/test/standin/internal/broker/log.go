package broker

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/options"
)

// severity is the severity of a message, as a syslog number.
type severity int

const (
	crit severity = 2
	fail severity = 3
	info severity = 6
)

var severityNames = map[severity]string{crit: "crit", fail: "err", info: "info"}

// logger writes the messages of a broker, in the format of a real broker.
type logger struct {
	out     io.Writer
	now     func() time.Time
	options options.Log
	host    string
	// rank is negative until it is known.
	rank int
}

// printf logs a message of a part of the broker. A real follower sends its messages to the leader. Here a follower's
// message is written if it is critical, or if the options say so.
func (l *logger) printf(s severity, part, format string, args ...any) {
	if s > crit && (int(s) > l.options.Level || l.rank > 0 && !l.options.Local) {
		return
	}
	where := l.host
	if l.rank >= 0 {
		where = strconv.Itoa(l.rank)
	}
	prefix := l.now().Format("Jan 02 15:04:05.000000 MST 2006 ")
	if l.options.Local {
		prefix = fmt.Sprintf("<%d>", s)
	}
	fmt.Fprintf(l.out, "%s%s.%s[%s]: %s\n", prefix, part, severityNames[s], where, fmt.Sprintf(format, args...))
}
