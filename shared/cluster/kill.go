package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// KillContainer kills the process of a pod's container, as the kernel does when memory runs out, so
// that it has no time to say goodbye. Deleting the pod is another matter: even with no grace period the
// kubelet sends SIGTERM and waits a second. The kubelet then starts the container again, after a pause
// if it did so before. node is the pod's spec.nodeName, id its containerID without the "containerd://".
func KillContainer(ctx context.Context, c Cluster, node, id string) error {
	k, isKind := c.(*kindCluster)
	if !isKind {
		return errors.New("killing a container: the harness reaches the nodes of its own kind clusters only")
	}
	n, err := k.node(node)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	err = n.CommandContext(ctx, "ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id).SetStderr(&stderr).Run()
	if err != nil {
		return fmt.Errorf("killing container %s on %s: %w: %s", id, node, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

func (k *kindCluster) node(name string) (nodes.Node, error) {
	all, err := k.provider.ListInternalNodes(k.name)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of %s: %w", k.name, err)
	}
	for _, node := range all {
		if node.String() == name {
			return node, nil
		}
	}
	return nil, fmt.Errorf("kind cluster %s has no node %s", k.name, name)
}
