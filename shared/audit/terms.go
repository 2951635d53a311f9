package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Term is the time in which one process of an operator held the lease.
type Term struct {
	// Writer is the process, as the function given to Terms names it.
	Writer string
	// Leases are its writes to the lease: the first acquires it, the others renew or release it.
	Leases []Event
	// Writes are its other writes, whatever the response.
	Writes []Event
}

// Terms takes all writes of an operator with several replicas apart by the process that sent them, and
// returns who held the lease in which order. It fails if two ever wrote at once: if one wrote that held no
// lease, or not any more, or if one sent a request or got a response after the next had begun to acquire the lease.
// writer names the process that sent a request, by its user agent or by Credential; lease is how long a
// lease lasts that is not renewed. The first term may have begun before the events do; what was written
// before its first renewal that is among them counts as outside of it.
func Terms(events []Event, writer func(*Event) string, lease time.Duration) ([]Term, error) {
	terms, err := takeApart(events, writer)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(terms); i++ {
		former, began := &terms[i-1], terms[i].Began()
		for _, event := range slices.Concat(former.Leases, former.Writes) {
			if !event.StageTimestamp.Time.Before(began) {
				return nil, fmt.Errorf("%s still wrote when %s acquired the lease at %s: %s", former.Writer, terms[i].Writer, clock(began), describe(&event))
			}
		}
	}
	for i := range terms {
		if err := terms[i].check(lease); err != nil {
			return nil, err
		}
	}
	return terms, nil
}

// takeApart returns one term for each writer, by the time of its first write to the lease.
func takeApart(events []Event, writer func(*Event) string) ([]Term, error) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return received(&a).Compare(received(&b)) })
	var terms []Term
	of := func(e *Event) int {
		return slices.IndexFunc(terms, func(t Term) bool { return t.Writer == writer(e) })
	}
	taken := []Filter{Resource("coordination.k8s.io", "leases"), Writes(), ResponseCode(200, 201)}
	for _, event := range events {
		if !matches(&event, taken) {
			continue
		}
		if i := of(&event); i >= 0 {
			terms[i].Leases = append(terms[i].Leases, event)
		} else {
			terms = append(terms, Term{Writer: writer(&event), Leases: []Event{event}})
		}
	}
	work := []Filter{Writes(), Budgeted()}
	for _, event := range events {
		if !matches(&event, work) {
			continue
		}
		i := of(&event)
		if i < 0 {
			return nil, fmt.Errorf("%s never held the lease, and wrote: %s", writer(&event), describe(&event))
		}
		terms[i].Writes = append(terms[i].Writes, event)
	}
	return terms, nil
}

// check asserts that each write came while the lease lasted that had been taken or renewed last.
func (t *Term) check(lease time.Duration) error {
	for _, write := range t.Writes {
		var last time.Time
		for _, renewal := range t.Leases {
			if received(&renewal).After(received(&write)) {
				break
			}
			last = received(&renewal)
		}
		switch at := received(&write); {
		case last.IsZero():
			return fmt.Errorf("%s wrote before it acquired the lease at %s: %s", t.Writer, clock(t.Began()), describe(&write))
		case at.After(last.Add(lease)):
			return fmt.Errorf("%s wrote with a lease that it last renewed at %s: %s", t.Writer, clock(last), describe(&write))
		}
	}
	return nil
}

// Last is the time of the writer's last request of all, which for one that was killed is all but the
// moment of its end. The response counts, because it may have come when the writer was gone.
func (t *Term) Last() time.Time {
	last := time.Time{}
	for _, event := range slices.Concat(t.Leases, t.Writes) {
		if event.StageTimestamp.After(last) {
			last = event.StageTimestamp.Time
		}
	}
	return last
}

// Began is when the writer acquired the lease, or first renewed it within the events.
func (t *Term) Began() time.Time { return received(&t.Leases[0]) }

func received(e *Event) time.Time { return e.RequestReceivedTimestamp.Time }

func clock(t time.Time) string { return t.Format("15:04:05.000") }

func describe(e *Event) string { return strings.TrimSpace(Describe([]Event{*e})) }
