// Package transport contains what changes the requests of a client, or its connections to the API server.
package transport

import (
	"context"
	"net"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// Outage simulates that the API server of some clients is down.
type Outage struct {
	mu          sync.Mutex
	down        bool
	connections []net.Conn
}

// Attach has the clients of config connect through the outage. While it lasts, the result is the same as if no process listened on
// the port.
func (o *Outage) Attach(config *rest.Config) {
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.down {
			_ = connection.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Addr: connection.RemoteAddr(), Err: syscall.ECONNREFUSED}
		}
		o.connections = append(o.connections, connection)
		return connection, nil
	}
}

// Begin ends the clients' connections too.
func (o *Outage) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = true
	for _, connection := range o.connections {
		_ = connection.Close()
	}
	o.connections = nil
}

// End lets the clients connect again.
func (o *Outage) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = false
}
