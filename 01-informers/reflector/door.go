package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// door is a TCP proxy in front of the API server. While it is shut, the port refuses connections, as that
// of a server that is not running does.
type door struct {
	// target is where it leads, address where it stands. Neither changes.
	target, address string

	mu          sync.Mutex
	listener    net.Listener
	connections map[net.Conn]bool
	running     sync.WaitGroup
}

// newDoor returns an open door to target, host and port.
func newDoor(ctx context.Context, target string) (*door, error) {
	d := &door{target: target, address: "127.0.0.1:0", connections: map[net.Conn]bool{}}
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	d.address = d.listener.Addr().String()
	return d, nil
}

// dial is for rest.Config.Dial: whatever the client wants to reach, it goes through the door. The URL and
// the certificate that the client expects stay the server's own.
func (d *door) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, d.address)
}

// open listens, always on the same port. While the door was shut, a connection of somebody else on this
// machine may have been given that port, for a moment.
func (d *door) open(ctx context.Context) error {
	var listener net.Listener
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", d.address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("opening the door: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = listener
	d.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // It was shut.
			}
			d.running.Go(func() { d.pass(ctx, client) })
		}
	})
	return nil
}

// pass copies both ways until one side ends.
func (d *door) pass(ctx context.Context, client net.Conn) {
	defer d.forget(client)
	server, err := new(net.Dialer).DialContext(ctx, "tcp", d.target)
	if err != nil {
		return // The client sees that its connection is closed.
	}
	defer d.forget(server)
	if !d.remember(client, server) {
		return
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
	}
	both.Wait()
}

// remember says false where the door was shut in the meantime.
func (d *door) remember(connections ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range connections {
		d.connections[one] = true
	}
	return d.listener != nil
}

func (d *door) forget(connection net.Conn) {
	_ = connection.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.connections, connection)
}

// shut refuses new connections, ends those that are there, and waits until all is quiet. Shutting twice
// is fine.
func (d *door) shut() {
	d.mu.Lock()
	if d.listener != nil {
		_ = d.listener.Close()
		d.listener = nil
	}
	for connection := range d.connections {
		_ = connection.Close()
	}
	d.mu.Unlock()
	d.running.Wait()
}
