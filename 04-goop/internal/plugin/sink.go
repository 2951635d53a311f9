package plugin

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// sink is the destination of the workers' output. Several goroutines use it at the same time.
type sink interface {
	// open returns the destination of one worker's output. It is called once for each worker.
	open(at place) output
	// finish is called once, after all output.
	finish(of summary) error
}

// output is the destination of one worker's output. One goroutine uses it at a time.
type output interface {
	io.Writer
	// end is called after the last write.
	end(result) error
}

// place identifies a worker: the round-th, from 0, on its node.
type place struct {
	node  string
	round int32
}

// result is how a worker ended, as far as it is known.
type result struct {
	place
	record *worker.Record // nil: its end is not known
	// lost is the reason why the log could not be read, or not completely. Then the output shows the end of the output in
	// the record, as far as it is missing.
	lost    string
	partial bool   // a part of the log was read
	rest    string // the part of the record's output after what was read of the log
}

// instead returns the part of the record's output that replaces what could not be read of the log.
func (r result) instead() []byte {
	switch {
	case r.lost == "" || r.record == nil:
		return nil
	case r.partial:
		return []byte(r.rest)
	}
	return []byte(r.record.Output)
}

// summary is how the work ended.
type summary struct {
	goop       *v1alpha1.Goop
	exitCode   int
	reason     string  // a condition's reason, or TimedOut, Interrupted, Deleted
	unfinished []place // workers with pods that have not ended
}

// names are the names of workers in messages: that of the node, and if nodes have several workers, also the round.
type names struct{ several atomic.Bool }

func (n *names) of(at place) string {
	if n.several.Load() {
		return at.node + "/" + strconv.Itoa(int(at.round))
	}
	return at.node
}

// maxNamed is how many workers are listed in a sentence. Names that are folded into one count once.
const maxNamed = 20

// some lists workers, up to maxNamed, and how many more there are.
func (n *names) some(all []place) string {
	workers := make([]string, len(all))
	for i, at := range all {
		workers[i] = n.of(at)
	}
	folded := folded(workers)
	if more := len(folded) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(folded[:maxNamed], ", "), more)
	}
	return strings.Join(folded, ", ")
}
