package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// NodeTransport reaches the addresses of the cluster's nodes over HTTP from this machine. On Linux
// the nodes' network is a bridge of this machine. Elsewhere (Docker Desktop) it is inside a virtual
// machine, and kind can only map ports that are known beforehand: there curl, which every node has,
// asks from inside a node. That way takes GET requests only.
func NodeTransport(c Cluster) (http.RoundTripper, error) {
	if !c.RunsContainers() {
		return nil, errors.New("no container runs here: nothing listens on the nodes' ports")
	}
	k, isKind := c.(*kindCluster)
	if runtime.GOOS == "linux" || !isKind {
		// A connection kept open would go on to a pod that a Service has dropped long since.
		return &http.Transport{DisableKeepAlives: true}, nil
	}
	node, err := k.controlPlane()
	if err != nil {
		return nil, err
	}
	return curl{node}, nil
}

// curl sends requests from inside a node.
type curl struct{ node nodes.Node }

func (c curl) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("asking %s from inside a node: only GET works, not %s", request.URL, request.Method)
	}
	args := []string{"--silent", "--show-error", "--include", "--http1.1", "--max-time", "30"}
	for name, values := range request.Header {
		for _, value := range values {
			args = append(args, "--header", name+": "+value)
		}
	}
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	var stdout, stderr bytes.Buffer
	if err := c.node.CommandContext(ctx, "curl", append(args, request.URL.String())...).SetStdout(&stdout).SetStderr(&stderr).Run(); err != nil {
		return nil, fmt.Errorf("asking %s from inside a node: %w: %s", request.URL, err, strings.TrimSpace(stderr.String()))
	}
	return http.ReadResponse(bufio.NewReader(&stdout), request)
}
