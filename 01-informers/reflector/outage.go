package main

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// outage simulates that the API server of one client is down.
type outage struct {
	mu          sync.Mutex
	down        bool
	connections []net.Conn
}

// dial is for rest.Config.Dial. During the outage the result is the same as if no process listens on the port.
func (o *outage) dial(ctx context.Context, network, address string) (net.Conn, error) {
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

// begin ends the client's connections too.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = true
	for _, connection := range o.connections {
		_ = connection.Close()
	}
	o.connections = nil
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = false
}
