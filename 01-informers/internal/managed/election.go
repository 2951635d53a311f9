package managed

import (
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/workbook/01-informers/internal/foo"
)

// newLock is the Lease that leader election is about. The manager would make one of its own, but it makes up the
// identity and keeps it to itself (NewResourceLock in pkg/leaderelection/leader_election.go), and the operator's
// requests are to bear the same name.
func newLock(config *rest.Config, namespace, identity string, renewDeadline time.Duration) (resourcelock.Interface, error) {
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	// A request that hangs must not cost the lease: there has to be time for another.
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for leader election: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: foo.LeaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// podNamespace is the namespace of the pod that this runs in, as its ServiceAccount has it.
func podNamespace() (string, error) {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("finding the namespace of the lease: outside a pod it must be given: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
