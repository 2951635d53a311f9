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

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/cluster"
)

// Event is one request, as audit.k8s.io/v1 has it.
type Event = auditv1.Event

// Filter says whether an event is wanted.
type Filter func(*Event) bool

// flushTimeout bounds the wait for the log to have everything up to now.
const flushTimeout = 30 * time.Second

// Read returns the requests that were answered before the call and that all filters want, in the
// order of the log. A request is there once; a watch that has not ended is there too.
func Read(ctx context.Context, c cluster.Cluster, filters ...Filter) ([]Event, error) {
	mark, err := sendMark(ctx, c)
	if err != nil {
		return nil, err
	}
	var events []Event
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, flushTimeout, true, func(ctx context.Context) (bool, error) {
		log, err := c.AuditLog(ctx)
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
	// There is no such object; the answer does not matter, only that there was one.
	result := clients.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").Name(mark).Do(ctx)
	code := 0
	if result.StatusCode(&code); code == 0 {
		return "", fmt.Errorf("marking the audit log: %w", result.Error())
	}
	return mark, nil
}

// parse reads events up to the mark. Only the last stage of a request counts, except that a watch
// which goes on has only its first.
func parse(log io.Reader, mark string, filters []Filter) (events []Event, found bool, err error) {
	seen := map[string]int{}
	reader := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, found, nil // what is left has no end yet: it is being written
		}
		if err != nil {
			return nil, false, err
		}
		if mark != "" && bytes.Contains(line, []byte(mark)) {
			return events, true, nil
		}
		event := Event{}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, false, fmt.Errorf("reading an event: %w", err)
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

func matches(event *Event, filters []Filter) bool {
	return !slices.ContainsFunc(filters, func(f Filter) bool { return !f(event) })
}

// By wants the requests of one user: an Operator's User().
func By(user string) Filter {
	return func(e *Event) bool { return e.User.Username == user }
}

// Since wants requests that arrived at or after a moment of the API server's clock, which is this
// machine's.
func Since(moment time.Time) Filter {
	// The log has microseconds.
	moment = moment.Truncate(time.Microsecond)
	return func(e *Event) bool { return !e.RequestReceivedTimestamp.Time.Before(moment) }
}

// Verbs wants requests with one of these verbs.
func Verbs(verbs ...string) Filter {
	return func(e *Event) bool { return slices.Contains(verbs, e.Verb) }
}

// Resource wants requests for one resource ("deployments") of a group (empty: the core group).
func Resource(group, resource string) Filter {
	return func(e *Event) bool {
		return e.ObjectRef != nil && e.ObjectRef.APIGroup == group && e.ObjectRef.Resource == resource
	}
}

// InNamespace wants requests for objects in one namespace.
func InNamespace(namespace string) Filter {
	return func(e *Event) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == namespace }
}

// Answered wants requests that were answered with one of these HTTP status codes.
func Answered(codes ...int32) Filter {
	return func(e *Event) bool { return e.ResponseStatus != nil && slices.Contains(codes, e.ResponseStatus.Code) }
}

// Credential tells the processes of one user apart: it is the id of the token that a request was sent
// with. Each pod has a token of its own, and so has each process of an operator.Process. It is empty
// for other ways to log in.
func Credential(e *Event) string {
	return strings.Join(e.User.Extra["authentication.kubernetes.io/credential-id"], " ")
}

// Not wants what another filter does not.
func Not(f Filter) Filter {
	return func(e *Event) bool { return !f(e) }
}

// Writes wants requests that change objects, whatever the answer. Dry runs change nothing.
func Writes() Filter {
	return func(e *Event) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
			!strings.Contains(e.RequestURI, "dryRun=All")
	}
}

// Budgeted wants requests that count for a write budget: not the leases of leader election, nor
// events about it, nor the reviews of tokens and access that serve metrics.
func Budgeted() Filter {
	return func(e *Event) bool {
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
	}
}
