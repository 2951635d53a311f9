package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path"
	"runtime"
	"strings"
)

// registriesDir is where containerd looks, at each pull, how to reach a registry.
const registriesDir = "/etc/containerd/certs.d"

// registryPatches have containerd look there. An image of kind's nodes has its configuration in one of two versions;
// kind skips the patch of the other.
var registryPatches = []string{
	"version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"" + registriesDir + "\"\n",
	"version = 3\n[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = \"" + registriesDir + "\"\n",
}

// HostAddress is the address of this machine in the network of the cluster's nodes: what listens there is reached
// from all of them, and from nowhere else. Only on Linux, and with an engine that runs as root, is it one of this
// machine's own.
func HostAddress(ctx context.Context, c Cluster) (string, error) {
	k, err := onThisMachine(c)
	if err != nil {
		return "", err
	}
	node, err := k.controlPlane()
	if err != nil {
		return "", err
	}
	format := "{{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}"
	output, err := exec.CommandContext(ctx, k.engine.Name, "inspect", "--format", format, node.String()).Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for the network of %s: %w", k.engine.Name, node, err)
	}
	for word := range strings.FieldsSeq(string(output)) {
		if net.ParseIP(word) != nil {
			return word, nil
		}
	}
	return "", fmt.Errorf("the network of %s has no gateway: %q", node, output)
}

// AddRegistry tells the nodes that images whose names begin with host ("localhost:5000") are available at url
// ("http://172.18.0.1:5000").
func AddRegistry(ctx context.Context, c Cluster, host, url string) error {
	hosts := fmt.Sprintf("[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", url)
	dir := path.Join(registriesDir, host)
	return onEachNode(ctx, c, hosts, "mkdir -p '"+dir+"' && cat >'"+dir+"/hosts.toml'")
}

// RemoveRegistry takes back what AddRegistry said.
func RemoveRegistry(ctx context.Context, c Cluster, host string) error {
	return onEachNode(ctx, c, "", "rm -rf '"+path.Join(registriesDir, host)+"'")
}

// onEachNode runs a script of sh on every node.
func onEachNode(ctx context.Context, c Cluster, stdin, script string) error {
	k, err := onThisMachine(c)
	if err != nil {
		return err
	}
	all, err := k.machines()
	if err != nil {
		return err
	}
	for _, node := range all {
		var stderr bytes.Buffer
		cmd := node.CommandContext(ctx, "sh", "-c", script).SetStdin(strings.NewReader(stdin)).SetStderr(&stderr)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("telling %s of a registry: %w: %s", node, err, bytes.TrimSpace(stderr.Bytes()))
		}
	}
	return nil
}

// onThisMachine returns a cluster of kind whose nodes' network is one of this machine's.
func onThisMachine(c Cluster) (*kindCluster, error) {
	k, isKind := c.(*kindCluster)
	if !isKind {
		return nil, fmt.Errorf("the nodes of the %s cluster %s cannot be told of a registry: only those of kind can", c.Kind(), c.Name())
	}
	if runtime.GOOS != "linux" {
		return nil, errors.New("the nodes run in a virtual machine: what listens on this machine is not reached from there")
	}
	return k, nil
}
