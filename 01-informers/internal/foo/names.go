package foo

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
)

const (
	// FieldOwner is the name under which the API server records the fields that the controller owns, and
	// the reporter of its Events.
	FieldOwner = "foo-controller"

	// LeaseName is the name of the Lease that leader election is about.
	LeaseName = "foo.samplecontroller.example.com"
)

// NewIdentity returns a name for one run of the controller, as leader election needs it: two replicas on
// one host differ, and so do two runs of one replica.
func NewIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding a name for this replica: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// UserAgent is what an implementation calls itself in its requests: the audit log tells two replicas apart
// by it.
func UserAgent(implementation, identity string) string {
	return fmt.Sprintf("%s/%s (%s)", FieldOwner, implementation, identity)
}
