package plugin

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// groupSink groups workers with the same output, byte by byte, and the same exit code. At the end it shows each output
// once, with its workers. Until then each different output is in a temporary file, up to the first maxCaptured bytes.
type groupSink struct {
	console *console
	names   *names
	notices *notices

	lock   sync.Mutex
	groups map[groupKey]*group
	spool  *os.File // nil: nothing was written yet
	end    int64    // of the spool
}

// groupKey is what the workers of a group have in common.
type groupKey struct {
	output [sha256.Size]byte
	code   int32 // or codeUnknown
}

// codeUnknown stands for the exit code of a worker without a record. Exit codes are never negative.
const codeUnknown = -1

// group is an output and the workers that wrote it.
type group struct {
	start, length int64 // in the spool
	clipped       int64
	from          []place
}

func newGroupSink(c *console, n *names, notices *notices) *groupSink {
	return &groupSink{console: c, names: n, notices: notices, groups: map[groupKey]*group{}}
}

func (s *groupSink) open(at place) output {
	return &groupOutput{capture: newCapture(), sink: s, at: at}
}

type groupOutput struct {
	*capture
	sink *groupSink
	at   place
}

func (o *groupOutput) end(r result) error {
	o.settle(r)
	o.sink.notices.lost(r)
	code := int32(codeUnknown)
	if r.record != nil {
		code = r.record.ExitCode
	}
	err := o.sink.add(o.at, code, o.capture)
	o.capture = nil
	return err
}

func (s *groupSink) add(from place, code int32, c *capture) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	key := groupKey{output: [sha256.Size]byte(c.sum.Sum(nil)), code: code}
	if known := s.groups[key]; known != nil {
		known.from = append(known.from, from)
		return nil
	}
	added := &group{start: s.end, length: int64(len(c.kept)), clipped: c.clipped(), from: []place{from}}
	if err := s.keep(c.kept); err != nil {
		return outputError{spoolError(err)}
	}
	s.groups[key] = added
	return nil
}

func (s *groupSink) keep(text []byte) error {
	if s.spool == nil {
		file, err := newSpool()
		if err != nil {
			return err
		}
		s.spool = file
	}
	n, err := s.spool.WriteAt(text, s.end)
	s.end += int64(n)
	return err
}

func newSpool() (*os.File, error) {
	file, err := os.CreateTemp("", "kubectl-goop-")
	if err != nil {
		return nil, err
	}
	// If the operating system allows it, the file has no name from now on, so that nothing is left of it however the
	// program ends.
	_ = os.Remove(file.Name())
	return file, nil
}

// checkSpool checks before a command runs that temporary files can be created. Otherwise its output would be lost.
func checkSpool() error {
	file, err := newSpool()
	if err != nil {
		return spoolError(err)
	}
	file.Close()
	_ = os.Remove(file.Name())
	return nil
}

func spoolError(err error) error { return fmt.Errorf("keeping outputs in a temporary file: %w", err) }

// finish prints the groups: those with the most workers first, then by name.
func (s *groupSink) finish(summary) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.spool == nil {
		return nil
	}
	defer func() {
		s.spool.Close()
		_ = os.Remove(s.spool.Name())
	}()
	type named struct {
		*group
		name string
	}
	var all []named
	for key, g := range s.groups {
		workers := make([]string, len(g.from))
		for i, at := range g.from {
			workers[i] = s.names.of(at)
		}
		all = append(all, named{g, title(joinFolded(workers), len(workers), key.code)})
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(len(b.from), len(a.from)), cmp.Compare(a.name, b.name))
	})
	for _, g := range all {
		if err := s.print(g.name, g.group); err != nil {
			return err
		}
	}
	return nil
}

// title lists the workers of a group, and their exit code unless it is 0.
func title(workers string, count int, code int32) string {
	if count > 1 {
		workers = fmt.Sprintf("%s (%d)", workers, count)
	}
	switch code {
	case 0:
		return workers
	case codeUnknown:
		return workers + ": exit code not known"
	}
	return fmt.Sprintf("%s: exit code %d", workers, code)
}

func (s *groupSink) print(name string, g *group) error {
	rule := strings.Repeat("-", 15)
	if _, err := fmt.Fprintf(s.console, "%s\n%s\n%s\n", rule, name, rule); err != nil {
		return err
	}
	if g.length == 0 {
		return nil
	}
	text := make([]byte, g.length, g.length+1) // at most maxCaptured, and an end of line
	if _, err := s.spool.ReadAt(text, g.start); err != nil {
		return outputError{fmt.Errorf("reading outputs from a temporary file: %w", err)}
	}
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if _, err := s.console.Write(s.console.shown(text)); err != nil {
		return err
	}
	if g.clipped > 0 {
		s.console.say("%s: the output continues for %d bytes, which are not shown: --group shows the first %d",
			name, g.clipped, maxCaptured)
	}
	return nil
}
