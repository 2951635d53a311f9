package foo

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
)

const (
	// FieldOwner is the name under which the API server records the fields that the controller owns. It is also the
	// reporting controller of its Events.
	FieldOwner = "foo-controller"

	// LeaseName is the name of the Lease for leader election.
	LeaseName = "foo.samplecontroller.example.com"
)

// NewIdentity returns a name for one run of the controller, for leader election: two replicas on one host have different
// names, and so have two runs of one replica.
func NewIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding a name for this replica: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// UserAgent is the user agent of an implementation's requests. It differs between replicas, so that the audit log shows
// which of them sent a request.
func UserAgent(implementation, identity string) string {
	return fmt.Sprintf("%s/%s (%s)", FieldOwner, implementation, identity)
}
