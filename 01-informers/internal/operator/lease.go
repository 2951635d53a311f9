package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/workbook/01-informers/internal/foo"
)

// namespaceFile holds the namespace of the pod that a process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// NewLock returns the Lease for leader election, under the identity that is also in the user agent of the replica's
// requests. The lock that a manager makes has an identity of its own (NewResourceLock in
// pkg/leaderelection/leader_election.go).
func NewLock(config *rest.Config, options Options, identity string) (resourcelock.Interface, error) {
	namespace := options.LeaderElectionNamespace
	if namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, errors.New("finding the namespace of the lease: outside a cluster --leader-election-namespace must be given")
		}
		namespace = strings.TrimSpace(string(content))
	}
	// After a request that hangs there is time for another one before the lease expires.
	config = rest.CopyConfig(config)
	config.Timeout = options.RenewDeadline / 2
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: foo.LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}
