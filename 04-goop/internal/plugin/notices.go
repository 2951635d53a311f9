package plugin

import "sync"

// maxNotices is how many lost outputs are told of one by one.
const maxNotices = 10

// notices tells of output that could not be had, and of anything else only once.
type notices struct {
	console *console
	names   *names

	lock   sync.Mutex
	said   map[string]bool
	losses int
}

func newNotices(c *console, n *names) *notices {
	return &notices{console: c, names: n, said: map[string]bool{}}
}

// once says something that has not been said before.
func (n *notices) once(text string) {
	n.lock.Lock()
	defer n.lock.Unlock()
	// Texts that differ each time would be no news, and would fill the memory.
	if n.said[text] || len(n.said) >= 100 {
		return
	}
	n.said[text] = true
	n.console.say("%s", text)
}

// lost tells that a worker's log could not be had, if so, and what is shown instead.
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
	case r.partial:
		n.console.say("%s: the end of its output may be missing: %s", name, r.lost)
	case r.record == nil:
		n.console.say("%s: its output could not be had: %s", name, r.lost)
	default:
		n.console.say("%s: its output could not be had: %s; shown is the end of it, at most 2 KiB, from the record",
			name, r.lost)
	}
}

// rest tells how many lost outputs were not told of.
func (n *notices) rest() {
	n.lock.Lock()
	defer n.lock.Unlock()
	if more := n.losses - maxNotices; more > 0 {
		n.console.say("the same is true of %d more workers", more)
	}
	n.losses = 0
}
