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

// sink is what becomes of the workers' output. Several goroutines use it at once.
type sink interface {
	// open returns where one worker's output goes. It is called once a worker.
	open(at place) output
	// finish is called once, when no more output comes.
	finish(of summary) error
}

// output is what becomes of one worker's output. It is used by one goroutine at a time.
type output interface {
	io.Writer
	// end says that nothing more will be written.
	end(result) error
}

// place is a worker: the round-th, from 0, of those on its node.
type place struct {
	node  string
	round int32
}

// result is how a worker ended, as far as that is known.
type result struct {
	place
	record *worker.Record // nil: it is not known to have ended
	// lost says why the log could not be had, or not to its end. Then there is the end of the output in the
	// record, which an output is to show if nothing else is there.
	lost    string
	partial bool // something of the log was had
}

// instead is what an output shows where nothing of the log was had: the end of the output, from the record.
func (r result) instead() []byte {
	if r.lost == "" || r.record == nil || r.partial {
		return nil
	}
	return []byte(r.record.Output)
}

// summary is how the work ended.
type summary struct {
	goop       *v1alpha1.Goop
	exitCode   int
	reason     string  // a condition's reason, or TimedOut, Interrupted, Deleted
	unfinished []place // whose pods are there and have not ended
}

// names are how workers are called: by their node, and where nodes have several, by their round too.
type names struct{ several atomic.Bool }

func (n *names) of(at place) string {
	if n.several.Load() {
		return at.node + "/" + strconv.Itoa(int(at.round))
	}
	return at.node
}

// maxNamed is how many workers are named in a sentence; those that fold to one name count once.
const maxNamed = 20

// some names workers, and says how many more there are if they are too many to be named.
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
