package inprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"example.com/workbook/01-informers/internal/testserver"
)

// Write is one request of an account that changed something, or tried to, from the server's audit log.
type Write struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the response.
	Code int
	// UserAgent differs between the operators under one account.
	UserAgent string
	// Received and Responded are times of the server's clock.
	Received, Responded time.Time
}

// String is "patch deployments NAMESPACE/NAME 200".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", w.Verb, resource, w.Namespace, w.Name, w.Code)
}

// Lease reports whether it is a write of leader election.
func (w Write) Lease() bool { return w.Group == "coordination.k8s.io" }

// Writes returns what the account has written to the objects of one namespace, in order; with an empty namespace, in all. Reviews
// of tokens and of access do not count. The server logs a request before it ends it, so every write with a response is there.
func (a *Account) Writes(tb testing.TB, namespace string) []Write {
	tb.Helper()
	log, err := os.ReadFile(testserver.AuditLog(tb))
	if err != nil {
		tb.Fatal(err)
	}
	var writes []Write
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) || !bytes.Contains(line, []byte(a.User)) {
			continue // the last line may be half written
		}
		var event struct {
			Verb, UserAgent string
			User            struct{ Username string }
			ObjectRef       *struct {
				APIGroup, Resource, Subresource, Namespace, Name string
			}
			ResponseStatus                           struct{ Code int }
			RequestReceivedTimestamp, StageTimestamp time.Time
		}
		if err := json.Unmarshal(line, &event); err != nil {
			tb.Fatalf("reading the audit log: %v", err)
		}
		ref := event.ObjectRef
		if event.User.Username != a.User || ref == nil || (namespace != "" && ref.Namespace != namespace) ||
			ref.APIGroup == "authentication.k8s.io" || ref.APIGroup == "authorization.k8s.io" {
			continue
		}
		writes = append(writes, Write{
			Verb: event.Verb, Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource,
			Namespace: ref.Namespace, Name: ref.Name, Code: event.ResponseStatus.Code,
			UserAgent: event.UserAgent, Received: event.RequestReceivedTimestamp, Responded: event.StageTimestamp,
		})
	}
	return writes
}
