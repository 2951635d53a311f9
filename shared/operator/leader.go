package operator

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"example.com/workbook/shared/audit"
)

// waitLeader waits until a lease of the operator's namespace is held by a replica that runs, and
// returns the holder's identity. The holder of a lease may be one that was killed a moment ago, and a
// namespace may hold leases of others: runs tells.
func waitLeader(ctx context.Context, clients kubernetes.Interface, namespace string, runs func(context.Context, *coordinationv1.Lease) (bool, error)) (identity string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, leaderTimeout, true, func(ctx context.Context) (bool, error) {
		leases, err := clients.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("listing leases: %w", err)
		}
		for _, lease := range leases.Items {
			identity = ptr.Deref(lease.Spec.HolderIdentity, "")
			if identity == "" {
				continue
			}
			if found, err := runs(ctx, &lease); found || err != nil {
				return found, err
			}
		}
		return false, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for a leader in %s: %w", namespace, err)
	}
	return identity, nil
}

// holder returns the replica that holds a lease, or nil if none does any more. The processes share the
// name of this machine, and with it the part of the identity that would tell. But each has a token of
// its own, and the audit log has the token's id: who wrote the lease last holds it.
func (p *Process) holder(ctx context.Context, lease *coordinationv1.Lease) (*replica, error) {
	writes, err := audit.Read(ctx, p.options.Cluster, audit.By(p.User()), audit.Writes(), audit.ResponseCode(200, 201),
		audit.Resource(coordinationv1.GroupName, "leases"), audit.InNamespace(lease.Namespace),
		audit.Where(func(e *audit.Event) bool { return e.ObjectRef.Name == lease.Name }))
	if err != nil || len(writes) == 0 {
		return nil, err
	}
	return p.withCredential(audit.Credential(&writes[len(writes)-1])), nil
}

// withCredential is the replica whose present process runs and has a token of this id, or nil.
func (p *Process) withCredential(id string) *replica {
	for _, r := range p.replicas {
		if r.running() && r.credential == id {
			return r
		}
	}
	return nil
}
