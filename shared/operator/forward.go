package operator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward makes a port of a pod reachable as a port of this machine, until stop is called.
func Forward(ctx context.Context, cfg *rest.Config, namespace, pod string, port int) (local int, stop func(), err error) {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return 0, nil, fmt.Errorf("making a client: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return 0, nil, fmt.Errorf("forwarding a port to pod %s: %w", pod, err)
	}
	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)

	done, ready := make(chan struct{}), make(chan struct{})
	var problems strings.Builder
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, done, ready, io.Discard, &problems)
	if err != nil {
		return 0, nil, fmt.Errorf("forwarding a port to pod %s: %w", pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return 0, nil, fmt.Errorf("forwarding a port to pod %s: %w %s", pod, err, problems.String())
	case <-ctx.Done():
		close(done)
		return 0, nil, fmt.Errorf("forwarding a port to pod %s: %w", pod, ctx.Err())
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(done)
		return 0, nil, fmt.Errorf("forwarding a port to pod %s: %w", pod, err)
	}
	stop = func() {
		close(done)
		<-ended //nolint:errcheck // it was asked to end
	}
	return int(ports[0].Local), stop, nil
}
