package cluster

import (
	"bytes"
	"context"
	"fmt"
)

// KillContainer kills the process of a pod's container, as the kernel does when memory runs out, so
// that it has no time to say goodbye. Deleting the pod is another matter: even with no grace period the
// kubelet sends SIGTERM and waits a second. The kubelet then starts the container again, after a pause
// if it did so before. node is the pod's spec.nodeName, id its containerID without the "containerd://".
func KillContainer(ctx context.Context, c Cluster, node, id string) error {
	_, n, err := machine(c, node)
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
