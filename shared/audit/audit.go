// Package audit reads a cluster's audit log: who sent which request. Tests count an operator's
// writes in it, and compare its requests with what its role allows.
package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/cluster"
)

// Event is one request, as audit.k8s.io/v1 has it.
type Event = auditv1.Event

// Filter selects events.
type Filter struct {
	selects func(*Event) bool
	// text, if there is one, is in the JSON of each event that is selected. A log has hundreds of thousands of events: those
	// without the text are not parsed, and where the log is in a node they are not transferred.
	text string
	// since, if it is there, is the earliest time at which a selected request arrived, as in the log.
	since string
}

// Where selects what a function does.
func Where(selects func(*Event) bool) Filter { return Filter{selects: selects} }

// withText adds to a filter that a field of the JSON has a value.
func (f Filter) withText(field, value string) Filter {
	if text, err := json.Marshal(value); err == nil && value != "" {
		f.text = fmt.Sprintf("%q:%s", field, text)
	}
	return f
}

// arrived comes before the time in the JSON of an event, which is in UTC and has microseconds.
const arrived = `"requestReceivedTimestamp":"`

// rejects reports whether it can be seen, without parsing it, that an event is not selected.
func (f Filter) rejects(line []byte) bool {
	if !bytes.Contains(line, []byte(f.text)) {
		return true
	}
	if f.since == "" {
		return false
	}
	_, at, found := bytes.Cut(line, []byte(arrived))
	return found && len(at) >= len(f.since) && string(at[:len(f.since)]) < f.since
}

// textsOf are the texts that each event has which all filters want.
func textsOf(filters []Filter) []string {
	var texts []string
	for _, f := range filters {
		if f.text != "" {
			texts = append(texts, f.text)
		}
	}
	return texts
}

// flushTimeout bounds the wait for the log to have everything up to now.
const flushTimeout = 30 * time.Second

// Read returns the requests that had a response before the call and that all filters select, in the
// order of the log. A request is there once; a watch that has not ended is there too.
func Read(ctx context.Context, c cluster.Cluster, filters ...Filter) ([]Event, error) {
	mark, err := sendMark(ctx, c)
	if err != nil {
		return nil, err
	}
	var events []Event
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, flushTimeout, true, func(ctx context.Context) (bool, error) {
		log, err := open(ctx, c, mark, filters)
		if err != nil {
			return false, err
		}
		defer log.Close()
		found := false
		events, found, err = parse(log, mark, filters)
		return found, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return events, nil
}

// open opens the log, or, if it is in a node, those of its lines that have all texts of the filters, or the mark.
func open(ctx context.Context, c cluster.Cluster, mark string, filters []Filter) (io.ReadCloser, error) {
	if remote, ok := c.(cluster.AuditSearcher); ok {
		return remote.SearchAuditLog(ctx, mark, textsOf(filters))
	}
	return c.AuditLog(ctx)
}

// sendMark sends a request with a name of its own. The API server writes the event of a request
// before it ends with it, so that once the mark is in the log, so is all that came before.
func sendMark(ctx context.Context, c cluster.Cluster) (string, error) {
	cfg, err := c.RESTConfig()
	if err != nil {
		return "", err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	mark := "audit-mark-" + string(uuid.NewUUID())
	// There is no such object: any response will do.
	result := clients.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").Name(mark).Do(ctx)
	code := 0
	if result.StatusCode(&code); code == 0 {
		return "", fmt.Errorf("marking the audit log: %w", result.Error())
	}
	return mark, nil
}

// parse reads events up to the mark. Only the last stage of a request counts, except that a watch
// which goes on has only its first. What is read is not an error before the mark is there: a search in a node may end a
// line that is being written.
func parse(log io.Reader, mark string, filters []Filter) (events []Event, found bool, err error) {
	var broken error
	seen := map[string]int{}
	reader := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			return events, found, nil // what is left has no end yet: it is being written
		}
		if err != nil {
			return nil, false, err
		}
		if mark != "" && bytes.Contains(line, []byte(mark)) {
			return events, true, broken
		}
		if slices.ContainsFunc(filters, func(f Filter) bool { return f.rejects(line) }) {
			continue
		}
		event := Event{}
		if err := json.Unmarshal(line, &event); err != nil {
			broken = fmt.Errorf("reading an event: %w", err)
			continue
		}
		if !matches(&event, filters) {
			continue
		}
		id := string(event.AuditID)
		if at, again := seen[id]; again {
			events[at] = event
			continue
		}
		seen[id] = len(events)
		events = append(events, event)
	}
}

// readLine reads a line, which is valid until the next one is read.
func readLine(reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	begin := bytes.Clone(line)
	rest, err := reader.ReadBytes('\n')
	return append(begin, rest...), err
}

func matches(event *Event, filters []Filter) bool {
	return !slices.ContainsFunc(filters, func(f Filter) bool { return !f.selects(event) })
}

// By selects the requests of one user: an Operator's User().
func By(user string) Filter {
	return Where(func(e *Event) bool { return e.User.Username == user }).withText("username", user)
}

// Since selects requests that arrived at or after a moment of the API server's clock, which is this
// machine's.
func Since(moment time.Time) Filter {
	// The log has microseconds.
	moment = moment.Truncate(time.Microsecond)
	f := Where(func(e *Event) bool { return !e.RequestReceivedTimestamp.Time.Before(moment) })
	f.since = moment.UTC().Format(metav1.RFC3339Micro)
	return f
}

// Verbs selects requests with one of these verbs.
func Verbs(verbs ...string) Filter {
	return Where(func(e *Event) bool { return slices.Contains(verbs, e.Verb) })
}

// Resource selects requests for one resource ("deployments") of a group (empty: the core group).
func Resource(group, resource string) Filter {
	return Where(func(e *Event) bool {
		return e.ObjectRef != nil && e.ObjectRef.APIGroup == group && e.ObjectRef.Resource == resource
	}).withText("resource", resource)
}

// InNamespace selects requests for objects in one namespace.
func InNamespace(namespace string) Filter {
	return Where(func(e *Event) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == namespace }).withText("namespace", namespace)
}

// ResponseCode selects requests whose response had one of these HTTP status codes.
func ResponseCode(codes ...int32) Filter {
	return Where(func(e *Event) bool { return e.ResponseStatus != nil && slices.Contains(codes, e.ResponseStatus.Code) })
}

// Credential tells the processes of one user apart: it is the id of the token that a request was sent
// with. Each pod has a token of its own, and so has each process of an operator.Process. It is empty
// for other ways to log in.
func Credential(e *Event) string {
	return strings.Join(e.User.Extra["authentication.kubernetes.io/credential-id"], " ")
}

// Not selects what another filter does not.
func Not(f Filter) Filter {
	return Where(func(e *Event) bool { return !f.selects(e) })
}

// Writes selects requests that change objects, whatever the response. Dry runs change nothing.
func Writes() Filter {
	return Where(func(e *Event) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
			!strings.Contains(e.RequestURI, "dryRun=All")
	})
}

// Budgeted selects requests that count for a write budget: not the leases of leader election, nor
// events about it, nor the reviews of tokens and access that serve metrics.
func Budgeted() Filter {
	return Where(func(e *Event) bool {
		if e.ObjectRef == nil {
			return false
		}
		switch e.ObjectRef.APIGroup {
		case "coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
			return false
		}
		// controller-runtime's leader election records its events in the lease's namespace, through
		// the core group's API or the new one.
		return e.ObjectRef.Resource != "events" || !isLeaderElection(e)
	})
}
