package inprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

// Write is one request of an account that changed something, or tried to: an event of the server's audit log.
type Write struct {
	Verb   string
	Object `json:"objectRef"`
	// UserAgent differs between the operators under one account.
	UserAgent      string
	User           struct{ Username string }
	ResponseStatus struct{ Code int }
	// Received and Responded are times of the server's clock.
	Received  time.Time `json:"requestReceivedTimestamp"`
	Responded time.Time `json:"stageTimestamp"`
}

// Object is what a request is about.
type Object struct {
	Group                                  string `json:"apiGroup"`
	Resource, Subresource, Namespace, Name string
}

// String is "patch deployments NAMESPACE/NAME 200".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", w.Verb, resource, w.Namespace, w.Name, w.ResponseStatus.Code)
}

// Lease reports whether it is a write of leader election.
func (w Write) Lease() bool { return w.Group == "coordination.k8s.io" }

// Writes returns what the account has written to the objects of one namespace, in order; with an empty namespace, in all. Reviews
// of tokens and of access do not count. The server logs a request before it ends it, so every write with a response is there.
func (a *Account) Writes(tb testing.TB, namespace string) []Write {
	tb.Helper()
	log, err := os.ReadFile(testserver.AuditLog(tb))
	gomega.NewWithT(tb).Expect(err).NotTo(gomega.HaveOccurred())
	var writes []Write
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) || !bytes.Contains(line, []byte(a.User)) {
			continue // the last line may be half written
		}
		var write Write
		gomega.NewWithT(tb).Expect(json.Unmarshal(line, &write)).To(gomega.Succeed(), "%s", line)
		if write.User.Username == a.User && (namespace == "" || write.Namespace == namespace) &&
			write.Group != "authentication.k8s.io" && write.Group != "authorization.k8s.io" {
			writes = append(writes, write)
		}
	}
	return writes
}
