package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/operator"
)

// responseTimeout is the time one request of NodeGet has. A node sends a connection on to a pod that has
// just ended, if it does not know yet, and no packet comes back: the kernel would try for two minutes.
const responseTimeout = 5 * time.Second

// NodeURLs are the addresses of a node port, one for each node that runs pods. NodeGet reaches them
// from everywhere; a browser on this machine does on Linux only.
func (e *Env) NodeURLs(ctx context.Context, port int32) ([]string, error) {
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, node := range nodes {
		urls = append(urls, "http://"+net.JoinHostPort(node.Address, strconv.Itoa(int(port))))
	}
	return urls, nil
}

// NodeGet asks an address of NodeURLs, on a new connection each time. It fails only if there is no
// whole response within five seconds; header may be nil.
func (e *Env) NodeGet(ctx context.Context, url string, header http.Header) (status int, body string, err error) {
	transport, err := cluster.NodeTransport(e.Cluster)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", url, err)
	}
	if header != nil {
		request.Header = header
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading the response of %s: %w", url, err)
	}
	return response.StatusCode, string(text), nil
}

// Token returns a token of a ServiceAccount, for Operator.Metrics.
func (e *Env) Token(ctx context.Context, namespace, serviceAccount string) (string, error) {
	return operator.Token(ctx, e.Config, namespace, serviceAccount)
}
