package plugin

import "sync"

// maxNotices is how many lost outputs are reported one by one.
const maxNotices = 10

// notices reports lost output, and prints each other message only once.
type notices struct {
	console *console
	names   *names

	lock    sync.Mutex
	printed map[string]bool
	losses  int
}

func newNotices(c *console, n *names) *notices {
	return &notices{console: c, names: n, printed: map[string]bool{}}
}

// once prints a message that was not printed before.
func (n *notices) once(text string) {
	n.lock.Lock()
	defer n.lock.Unlock()
	// Messages that differ each time would repeat the same information and fill the memory.
	if n.printed[text] || len(n.printed) >= 100 {
		return
	}
	n.printed[text] = true
	n.console.say("%s", text)
}

// lost reports that the log of a worker could not be read, if that is so, and what is shown instead.
func (n *notices) lost(r result) {
	if r.lost == "" {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.losses++; n.losses > maxNotices {
		return
	}
	name := n.names.of(r.place)
	switch {
	case r.partial && r.rest != "":
		n.console.say("%s: the end of its output is shown from the record: %s", name, r.lost)
	case r.partial:
		n.console.say("%s: the end of its output may be missing: %s", name, r.lost)
	case r.record == nil:
		n.console.say("%s: its output is not available: %s", name, r.lost)
	default:
		n.console.say("%s: its output is not available: %s; shown is the end of it, at most 2 KiB, from the record",
			name, r.lost)
	}
}

// rest reports how many lost outputs were not reported one by one.
func (n *notices) rest() {
	n.lock.Lock()
	defer n.lock.Unlock()
	if more := n.losses - maxNotices; more > 0 {
		n.console.say("the same is true of %d more workers", more)
	}
	n.losses = 0
}
