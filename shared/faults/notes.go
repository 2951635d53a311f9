package faults

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// occurrence numbers what happens to an object, and returns the address of it.
func (tr *trial) occurrence(verb string, resource schema.GroupResource, symbol, subresource string) string {
	what := verb + " " + resource.Resource
	if symbol != "" {
		what += "/" + symbol
	}
	if subresource != "" {
		what += "/" + subresource
	}
	return tr.occurrenceOf(what)
}

func (tr *trial) occurrenceOf(what string) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.seen[what]++
	at := what + "#" + strconv.Itoa(tr.seen[what])
	if !tr.over {
		tr.addresses = append(tr.addresses, at)
	}
	return at
}

// hits returns the faults that have their place at an address. An error that repeats has more than one.
func (tr *trial) hits(at string) []Fault {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var all []Fault
	for i, fault := range tr.schedule.Faults {
		if tr.over || fault.On != at && !repeats(fault, at) {
			continue
		}
		if fault.Kind == "pause" && tr.paused != nil {
			continue
		}
		tr.hit[i] = true
		tr.progress++
		all = append(all, fault)
	}
	return all
}

func repeats(fault Fault, at string) bool {
	if !strings.HasPrefix(fault.Kind, "error-") {
		return false
	}
	first, from, _ := strings.Cut(fault.On, "#")
	what, number, _ := strings.Cut(at, "#")
	start, _ := strconv.Atoi(from)
	now, _ := strconv.Atoi(number)
	return first == what && now > start && now <= start+fault.Arg
}

// written counts a write and checks the invariants.
func (tr *trial) written(ctx context.Context, write Write) {
	on := write.Resource.Resource + "/" + tr.symbol(write.Resource, write.Name)
	tr.mu.Lock()
	tr.progress++
	tr.recent = append(tr.recent, write.By+" "+write.Verb+" "+on)
	if write.By == operatorName {
		if tr.counts[on] == nil {
			tr.counts[on] = &count{}
		}
		switch {
		case write.Before == nil:
			tr.counts[on].Creates++
		case write.Verb == http.MethodDelete:
			tr.counts[on].Deletes++
		default:
			tr.counts[on].Updates++
		}
	}
	tr.mu.Unlock()
	if write.By == operatorName {
		for _, p := range []*process{tr.process, tr.paused} {
			if p != nil {
				p.noteWrite(write.Resource)
			}
		}
	}
	tr.state.Last = write
	tr.writes = append(tr.writes, write)
	tr.checkInvariants(ctx, on)
}

func (tr *trial) recentWrites() []string { return tr.recent[max(0, len(tr.recent)-8):] }

func (tr *trial) lastWritten() string {
	if len(tr.recent) == 0 {
		return "nothing"
	}
	last := tr.recent[len(tr.recent)-1]
	return last[strings.LastIndex(last, " ")+1:]
}

// record records an Event.
func (tr *trial) record(event Event, note string) {
	tr.mu.Lock()
	event.On = tr.names.symbolOf(event.On)
	tr.recorded = append(tr.recorded, event)
	tr.mu.Unlock()
	tr.line("  Event %s %s on %s: %s", event.Type, event.Reason, event.On, tr.masked(note))
}

// line adds a line to the timeline.
func (tr *trial) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.timeline = append(tr.timeline, text)
}

// alarm notes what an oracle says. The first one counts.
func (tr *trial) alarm(oracle, on, message string) {
	message = tr.masked(message)
	tr.line("ALARM %s: %s: %s", oracle, on, message)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.failure == nil {
		tr.failure = &Failure{Oracle: oracle, On: on, Message: message}
	}
}
