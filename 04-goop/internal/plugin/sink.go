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
	finish(summary) error
}

// output is the destination of one worker's output. One goroutine uses it at a time.
type output interface {
	io.Writer
	// end is called after the last write.
	end(result) error
}

// place identifies a worker by its node and its round: its number, from 0, among the workers on that node.
type place struct {
	node  string
	round int32
}

// result is how a worker ended, as far as it is known.
type result struct {
	place
	record *worker.Record // nil: its end is not known
	// lost is the reason why the log could not be read, or not completely. The last part of the output, which the
	// record contains, is then shown instead of what could not be read.
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

// maxNamed is how many workers are listed in a sentence. A range such as node[1-3] counts as one.
const maxNamed = 20

// some lists workers, up to maxNamed, and how many more there are.
func (n *names) some(all []place) string {
	workers := make([]string, len(all))
	for i, at := range all {
		workers[i] = n.of(at)
	}
	shortened := foldNames(workers)
	if more := len(shortened) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shortened[:maxNamed], ", "), more)
	}
	return strings.Join(shortened, ", ")
}
