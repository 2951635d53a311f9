package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// RestartNode stops the machine of a node and starts it again, as a reboot does: what runs there ends, and its kubelet
// starts it anew. It returns when the machine is up, which is before its node is ready again.
func RestartNode(ctx context.Context, c Cluster, node string) error {
	k, n, err := machine(c, node)
	if err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, k.engine.Name, "restart", n.String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("restarting node %s: %w: %s", node, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// RestartKubelet restarts the kubelet of a node, and nothing else there. If its Node object was deleted, the
// kubelet makes another: the node joins again.
func RestartKubelet(ctx context.Context, c Cluster, node string) error {
	_, n, err := machine(c, node)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	if err := n.CommandContext(ctx, "systemctl", "restart", "kubelet").SetStderr(&stderr).Run(); err != nil {
		return fmt.Errorf("restarting the kubelet of %s: %w: %s", node, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// machine is that of a node, and the cluster that it belongs to.
func machine(c Cluster, node string) (*kindCluster, nodes.Node, error) {
	k, isKind := c.(*kindCluster)
	if !isKind {
		return nil, nil, fmt.Errorf("reaching node %s: the harness reaches the nodes of its own kind clusters only", node)
	}
	all, err := k.machines()
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(all, func(n nodes.Node) bool { return n.String() == node })
	if at < 0 {
		return nil, nil, fmt.Errorf("kind cluster %s has no node %s", k.name, node)
	}
	return k, all[at], nil
}
